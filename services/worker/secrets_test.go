package worker

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/redact"
)

// A secret reaches the job that names it, and nothing that anybody can read
// afterwards: not its output however it is written, not the stream, not the
// worker's files.
func TestSecretReachesTheJobAlone(t *testing.T) {
	y := newYard(t, rules)
	file := filepath.Join(t.TempDir(), "db")
	must(t, os.WriteFile(file, []byte("tok-FAKE-abcdef123456\n"), 0o600))
	t.Setenv("PASSED_TOKEN", "passed-FAKE-0123456789")
	y.hire("worker", "", func(c *Config) {
		c.Secrets = map[string]string{"DB": "file:" + file, "CMD": "cmd:/bin/echo cmd-FAKE-value-77"}
		c.EnvPass = append(c.EnvPass, "PASSED_TOKEN")
	}).run()
	seen := filepath.Join(filepath.Dir(file), "seen")
	script := `echo "$PW $CMD" >` + seen + `
set -x; echo "token is $PW and $CMD, $PASSED_TOKEN"; set +x
printf 'x%s' "$PW" | base64; echo AKIA""ABCDEFGH12345678
set -- $(echo "$PW" | sed 's/./& /g'); for c in "$@"; do printf %s "$c"; sleep 0.02; done; echo .`
	id := y.propose([]string{"sh", "-c", script}, func(p *events.JobProposed) { p.Env = map[string]string{"PW": "secret:DB", "CMD": "secret:CMD"} })
	y.approve(id)
	y.seal()
	j := y.ends(id)
	if j.Status != lifecycle.Succeeded {
		t.Fatalf("status %q, %s", j.Status, y.output(id, 1, "stderr"))
	}
	stdout, stderr := string(y.output(id, 1, "stdout")), string(y.output(id, 1, "stderr"))
	want := "token is [redacted: DB] and [redacted: CMD], [redacted: PASSED_TOKEN]\neH[redacted: DB]g==\n[redacted: aws-access-key]\n[redacted: DB].\n"
	if stdout != want {
		t.Errorf("stdout %q, want %q", stdout, want)
	}
	if got, err := os.ReadFile(seen); err != nil || string(got) != "tok-FAKE-abcdef123456 cmd-FAKE-value-77\n" {
		t.Errorf("the job saw %q, %v", got, err)
	}
	if n := j.Current().Result.Stdout.Redacted; n != 6 {
		t.Errorf("%d secrets were counted, want 6", n)
	}
	if !strings.Contains(stderr, "[redacted: DB]") {
		t.Errorf("stderr %q", stderr)
	}
	// Nothing on disk holds a value, the bus's own files included.
	must(t, filepath.WalkDir(y.ground, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range []string{"tok-FAKE-abcdef", "cmd-FAKE-value-77", "passed-FAKE"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds %s", path, secret)
			}
		}
		return err
	}))
}

func TestJobThatNamesAnUnknownSecretIsNotStarted(t *testing.T) {
	y := newYard(t, rules)
	y.hire("worker", "").run()
	id := y.propose([]string{"sh", "-c", "echo x"}, func(p *events.JobProposed) { p.Env = map[string]string{"PW": "secret:NOBODY"} })
	y.approve(id)
	y.seal()
	j := y.ends(id)
	if a := j.Current(); j.Status != lifecycle.Failed || a.Result.ExitCode != 126 || !strings.Contains(a.Result.Error, "secret NOBODY") {
		t.Errorf("status %q, %+v", j.Status, a.Result)
	}
}

// A secret is taken out before the output is cut: the cut cannot leave a half
// of one that nobody recognises.
func TestRedactedBeforeCut(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 200)
	for limit := int64(100); limit < 140; limit++ {
		r := newRecorder(filepath.Join(t.TempDir(), "spool"), limit, time.Now(), redact.New())
		for _, b := range []byte(strings.Repeat("x", 60) + " " + token + " " + strings.Repeat("y", 60)) {
			_, _ = r.stdout().Write([]byte{b})
		}
		_, _, fault := r.close()
		must(t, fault)
		streams, _ := collect(t, r)
		if bytes.Contains(streams["stdout"], []byte("a1B2")) {
			t.Errorf("limit %d: %q", limit, streams["stdout"])
		}
		r.discard()
	}
}
