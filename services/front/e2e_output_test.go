package front_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// file writes a file into the jobs' folder.
func (s *scripted) file(name string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.work, name), data, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// Bytes come back as they were written: lines of megabytes between short ones,
// text that is split in the middle of a letter, line ends of Windows, and what is
// no text at all; and every verb still speaks valid JSON.
func TestOutputComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s := newScripted(t, [3]string{"worker", "max_output_bytes", "67108864"})
	s.Up()
	var short strings.Builder
	for i := range 100 {
		fmt.Fprintf(&short, "line %d\n", i)
	}
	letters := strings.Repeat("x", 4093) + "🦊é" + strings.Repeat("y", 32<<10) + "é🦊\n"
	for name, data := range map[string][]byte{
		"a long line between short ones": []byte(short.String() + strings.Repeat("z", 12<<20) + "\n" + short.String()),
		"letters over every boundary":    []byte(letters),
		"line ends of Windows":           []byte("one\r\ntwo\r\n\r\nthree\r"),
		"no text":                        append([]byte("a\x00b\xfe\xff\xc3\x28 \x1b[31mred\x1b[0m 10%\r20%\r\n"), 0x80, 0),
		"nothing":                        nil,
	} {
		s.file("data", data)
		d := s.does(`cat data; cat data >&2`)
		r := s.Must(0, "tail", d.Job.Job)
		if d.Status != lifecycle.Succeeded || r.Stdout != string(data) || r.Stderr != string(data) {
			t.Errorf("%s: %s; %d bytes became %d and %d", name, d.Status, len(data), len(r.Stdout), len(r.Stderr))
		}
		if out := d.Result.StdoutInfo; out.Bytes != int64(len(data)) || out.StoredBytes != int64(len(data)) || out.CutBytes != 0 {
			t.Errorf("%s: described as %+v", name, out)
		}
		for line := range strings.Lines(s.Must(0, "replay", "--json", "--speed", "1000000", d.Job.Job).Stdout) {
			var c agentapi.Chunk
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatalf("%s: %v in %.100q", name, err, line)
			}
		}
	}
	// A letter whose halves come with a pause between them.
	if d := s.does(`printf 'caf\303'; sleep 0.3; printf '\251\n'`); d.Result.Stdout != "café\n" {
		t.Errorf("a letter in two halves became %q", d.Result.Stdout)
	}
}

// What was written later is stored and played later, whichever stream it went to,
// and a replay takes the time that it took.
func TestOutputKeepsItsOrderAndTime(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.Up()
	d := s.does(`for i in 1 2 3; do echo "out $i"; sleep 0.3; echo "err $i" >&2; sleep 0.3; done`)
	var text strings.Builder
	last := int64(0)
	for line := range strings.Lines(s.Must(0, "replay", "--json", "--speed", "1000", d.Job.Job).Stdout) {
		var c agentapi.Chunk
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.AtMS < last {
			t.Errorf("chunk %d is of %d ms, the one before it of %d", c.N, c.AtMS, last)
		}
		last = c.AtMS
		text.Write(c.Data)
	}
	if got := text.String(); got != "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n" || last < 1500 {
		t.Errorf("the last of %q is of %d ms", got, last)
	}
	began := time.Now()
	s.Must(0, "replay", "--speed", "4", d.Job.Job)
	if took := time.Since(began); took < time.Duration(last/4)*time.Millisecond {
		t.Errorf("%d ms of output, four times as fast, took %v", last, took)
	}
}

// The end of a job says how it came about, by name, and what it has used.
func TestUsageAndSignalsAreRecorded(t *testing.T) {
	t.Parallel()
	s := newScripted(t, [3]string{"worker", "limit_cpu_s", "1"}, [3]string{"worker", "limit_memory_bytes", strconv.Itoa(1 << 30)},
		[3]string{"worker", "limit_open_files", "32"}, [3]string{"worker", "limit_file_bytes", "65536"})
	s.Up()
	for name, c := range map[string]struct {
		script string
		want   func(r *view.Result) bool
	}{
		"crashed": {`kill -SEGV $$`, func(r *view.Result) bool { return r.Signal == "SIGSEGV" && r.ExitCode == -1 && r.Outcome == "failed" }},
		"killed":  {`kill -9 $$`, func(r *view.Result) bool { return r.Signal == "SIGKILL" }},
		// The kernel bounds a time that it samples at its ticks and reports one that it measures: they differ on a busy machine.
		"out of time": {`while :; do :; done`, func(r *view.Result) bool { return r.Signal == "SIGXCPU" && r.UserS+r.SystemS > 0.5 }},
		"large file":  {`exec head -c 1000000 /dev/zero >large`, func(r *view.Result) bool { return r.Signal == "SIGXFSZ" }},
		"memory":      {`x=$(head -c 2000000000 /dev/zero | tr '\0' x); echo "${#x}"`, func(r *view.Result) bool { return !strings.Contains(r.Stdout, "2000000000") }},
		"open files":  {`ulimit -n`, func(r *view.Result) bool { return r.Stdout == "32\n" }},
		"status":      {`exit 42`, func(r *view.Result) bool { return r.ExitCode == 42 && r.Signal == "" }},
		"time and size": {`head -c 30000000 /dev/zero | tail -c 20000000 | wc -c; sleep 0.2`, func(r *view.Result) bool {
			return r.DurationS >= 0.2 && r.UserS+r.SystemS > 0 && r.MaxRSSBytes > 15<<20 && r.StdoutInfo.Bytes == 9
		}},
	} {
		if d := s.does(c.script); d.Result == nil || !c.want(d.Result) {
			t.Errorf("%s: %s, %+v", name, d.Status, d.Result)
		}
	}
}

// A secret that a worker hands to a job is nowhere afterwards but where it came
// from: in no stream, log, file or view of the site, in no form that programs print,
// however its writes are split, and where output is cut in its middle.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const secret = `Tr0ub4dor&3/"xkcd+ä0123456789`
	source := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(source, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScripted(t, [3]string{"worker", "secrets", fmt.Sprintf("{ DB = %q }", "file:"+source)}, [3]string{"worker", "max_output_bytes", "65536"})
	up := s.Up("--log-level", "debug")
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"plain": secret, "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 in a text": base64.StdEncoding.EncodeToString([]byte("user:" + secret))[12:36],
		"url": url.QueryEscape(secret), "json": strings.Trim(string(quoted), `"`), "half": secret[8:24],
	}
	// Whole, in forms, split over writes with pauses, and where head and tail are
	// cut: the head takes 32 KiB, so does the tail.
	scripts := []string{
		`set -x; printf '%s\n' "$PASS" | tee /dev/stderr`,
		`printf %s "$PASS" | base64; printf %s "user:$PASS" | base64 -w 7`,
		`a=${PASS%????????????????????}; printf %s "$a"; sleep 0.3; printf '%s\n' "${PASS#"$a"}"`,
		`head -c 32758 /dev/zero | tr '\0' x; printf %s "$PASS"; head -c 70000 /dev/zero | tr '\0' y`,
		`head -c 70000 /dev/zero | tr '\0' x; printf %s "$PASS"; head -c 32758 /dev/zero | tr '\0' y`,
	}
	for _, form := range []string{"url", "json"} { // made elsewhere, as a program would
		s.file(form, []byte(forms[form]+"\n"))
		scripts = append(scripts, "cat "+form)
	}
	defer func() { _ = os.RemoveAll(s.work) }()
	found := func(where, text string) {
		for name, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%s holds the secret, %s", where, name)
			}
		}
	}
	for _, script := range scripts {
		d := s.does(script, "--env", "PASS=secret:DB")
		if d.Status != lifecycle.Succeeded || d.Result.StdoutInfo.Redacted == 0 || !strings.Contains(d.Result.Stdout+d.Result.Stderr, "[redacted: DB]") && d.Result.StdoutInfo.CutBytes == 0 {
			t.Errorf("%q: %s, nothing was redacted: %+v", script, d.Status, d.Result.StdoutInfo)
		}
		for _, verb := range []string{"tail", "show", "replay"} {
			r := s.Must(0, verb, d.Job.Job)
			found(verb+" of "+script, r.Stdout+r.Stderr)
		}
	}
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	found("what the roles have said", up.Stdout()+up.Stderr())
	err = filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found(path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// residentBytes is the most that a process has ever held in memory.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("VmHWM:"))
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// However much a job writes, its worker stays small: 500 MB are held within 40 MB,
// of which head and tail are most.
func TestFloodLeavesTheWorkerSmall(t *testing.T) {
	t.Parallel()
	flood := int64(60_000_000)
	if soak() {
		flood = 500_000_000
	}
	f, y := newFleet(t)
	f.Site.Set("worker", "max_output_bytes", strconv.Itoa(8<<20))
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	open := y.Close("gate")
	f.Site.Propose(y.Job("flood", "prints", strconv.FormatInt(flood, 10), "gate"))
	o.Await("flood", lifecycle.Running)
	open()
	j := o.Await("flood", lifecycle.Succeeded)
	if out := j.Current().Result.Stdout; out.Bytes < flood || out.StoredBytes != 8<<20 || out.CutBytes != out.Bytes-out.StoredBytes {
		t.Errorf("described as %+v", out)
	}
	most := int64(40 << 20)
	if lab.RaceEnabled {
		most *= 8 // the detector's own memory
	}
	if got := residentBytes(t, f.Member("worker").Pid()); got > most {
		t.Errorf("the worker has held %d MiB", got>>20)
	} else {
		t.Logf("%d MB passed through %d MiB", flood/1e6, got>>20)
	}
}
