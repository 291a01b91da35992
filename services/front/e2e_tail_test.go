package front_test

import (
	"encoding/json/v2"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab"
)

// Output is followed while the job runs, can be played again, holds no secret,
// and does nothing to a terminal.
func TestTailAndReplay(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	dir := t.TempDir()
	script := `printf 'one\n'; while ! test -e gate; do sleep 0.05; done; printf '\033[31mtwo\033[0m\n' >&2; printf 'AKIA'; printf 'QWERTYUIOPASDFGH end\n'`
	s.Must(0, "propose", "--cwd", dir, "--", "sh", "-c", script)
	j := pending(t, s)
	waits := s.Start("tail", j.Job)
	lab.Eventually(t, "tail to say what the job waits for", func() bool { return strings.Contains(waits.Stderr(), "is pending") })
	s.Must(0, "approve", j.Job)
	lab.Eventually(t, "the first line", func() bool { return waits.Stdout() == "one\n" })
	if err := os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const stdout, stderr = "one\n[redacted: aws-access-key] end\n", "\x1b[31mtwo\x1b[0m\n"
	if code := waits.Wait(); code != 0 || waits.Stdout() != stdout || !strings.HasSuffix(waits.Stderr(), stderr) {
		t.Errorf("tail exited %d: %q %q", code, waits.Stdout(), waits.Stderr())
	}
	if d := show(t, s, j.Job); d.Status != lifecycle.Succeeded {
		t.Errorf("the job is %s", d.Status)
	}
	for _, verb := range [][]string{{"tail", j.Job}, {"tail", "--attempt", "1", j.Job}, {"replay", j.Job, "--speed", "1000"}} {
		if r := s.Must(0, verb...); r.Stdout != stdout || r.Stderr != stderr {
			t.Errorf("%v: %s", verb, r)
		}
	}
	var text strings.Builder
	for line := range strings.Lines(s.Must(0, "replay", "--json", "--speed", "1000", j.Job).Stdout) {
		var c agentapi.Chunk
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Stream == "stdout" {
			text.Write(c.Data)
		}
	}
	if text.String() != stdout {
		t.Errorf("objects hold %q", text.String())
	}
	s.Must(2, "tail", "--attempt", "2", j.Job)
	s.Must(2, "replay", "--speed", "0", j.Job)
	s.Must(1, "tail", "no-such-job")

	for _, verb := range []string{"tail", "run"} {
		args := []string{verb, j.Job}
		if verb == "run" {
			args = []string{verb, "--attach", j.Job}
		}
		if seen := onScreen(t, s, args...); strings.Contains(seen, "\x1b") || !strings.Contains(seen, "two\r\n") {
			t.Errorf("%s: a terminal got %q", verb, seen)
		}
	}
}

// Output goes when it is the oldest and room is needed, no job waits for that room,
// and whoever asks for it afterwards is told.
func TestOldestOutputMakesRoomForNew(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Set("bus", "output_max_bytes", "16777216")
	s.Set("worker", "max_output_bytes", "33554432")
	s.Up()
	run := func(script string) string {
		s.Must(0, "propose", "--cwd", t.TempDir(), "--", "sh", "-c", script)
		j := pending(t, s)
		s.Must(0, "approve", j.Job)
		lab.Eventually(t, "the job to end", func() bool { return show(t, s, j.Job).Status == lifecycle.Succeeded })
		return j.Job
	}
	first := run("echo kept for a while")
	if r := s.Must(0, "tail", first); r.Stdout != "kept for a while\n" || r.Stderr != "" {
		t.Errorf("while there is room: %s", r)
	}
	run("head -c 20000000 /dev/zero | tr '\\0' x")
	digest := show(t, s, first).Result.StdoutInfo.SHA256
	for _, verb := range []string{"tail", "replay"} {
		if r := s.Must(0, verb, first); r.Stdout != "" || !strings.Contains(r.Stderr, "1 of 1 chunks of its output are no longer kept") {
			t.Errorf("%s: %s", verb, r)
		}
	}
	if d := show(t, s, first).Result; d.NotKept != 1 || d.Stdout != "" || digest != events.Digest([]byte("kept for a while\n")) {
		t.Errorf("shown as %+v", d)
	}
}

// onScreen runs a command that succeeds on a terminal of its own and returns what
// the terminal got.
func onScreen(t *testing.T, s *lab.Site, args ...string) string {
	t.Helper()
	cmd := s.Command(t.Context(), args...)
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	seen, _ := io.ReadAll(screen) // its end is an error on Linux
	if err := cmd.Wait(); err != nil {
		t.Errorf("%q: %v, %q", args, err, seen)
	}
	return string(seen)
}
