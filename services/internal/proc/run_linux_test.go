package proc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		script, signal string
		code           int
	}{
		{"exit 0", "", 0}, {"exit 7", "", 7}, {"exit 255", "", 255},
		{"kill -SEGV $$", "SIGSEGV", -1}, {"kill -KILL $$", "SIGKILL", -1}, {"kill -TERM $$", "SIGTERM", -1},
	} {
		outcome := ran(t, shell(t, c.script, nil))
		if outcome.ExitCode != c.code || outcome.Signal != c.signal || outcome.TimedOut || outcome.Cancelled || outcome.LeftBehind != 0 {
			t.Errorf("%s gives %+v", c.script, outcome)
		}
	}
}

// TestQuickFailureKeepsOutput repeats what a race between output and exit would break.
func TestQuickFailureKeepsOutput(t *testing.T) {
	var crew Crew
	defer crew.Close()
	for range 100 {
		var stdout, stderr bytes.Buffer
		spec := shell(t, `echo out; echo err >&2; exit 7`, nil)
		spec.Stdout, spec.Stderr = &stdout, &stderr
		p, err := crew.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if outcome := ended(t, p); outcome.ExitCode != 7 || stdout.String() != "out\n" || stderr.String() != "err\n" {
			t.Fatalf("%+v, stdout %q, stderr %q", outcome, &stdout, &stderr)
		}
	}
	if zombies := zombieChildren(); len(zombies) > 0 {
		t.Errorf("dead children that nobody collected: %v", zombies)
	}
}

func zombieChildren() []int {
	var out []int
	for _, pid := range allPIDs() {
		if stat, ok := readStat(pid); ok && stat.parent == os.Getpid() && !stat.alive() {
			out = append(out, pid)
		}
	}
	return out
}

func TestBytesPassUnchanged(t *testing.T) {
	input := make([]byte, 4<<20)
	for i := range input {
		input[i] = byte(rand.Uint32())
	}
	hash := sha256.New()
	spec := shell(t, `cat`, nil)
	spec.Stdin, spec.Stdout = bytes.NewReader(input), hash
	if outcome := ran(t, spec); outcome.ExitCode != 0 {
		t.Errorf("outcome is %+v", outcome)
	}
	if want := sha256.Sum256(input); !bytes.Equal(hash.Sum(nil), want[:]) {
		t.Error("the bytes that came back are not those that went in")
	}
}

// A counter counts bytes and keeps none.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

func TestFloodIsNotKept(t *testing.T) {
	const flood = 200 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var out counter
	if outcome := ran(t, shell(t, fmt.Sprintf(`head -c %d /dev/zero`, flood), &out)); outcome.ExitCode != 0 || out.n != flood {
		t.Errorf("%d bytes came, outcome %+v", out.n, outcome)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes were allocated for the output", grown)
	}
}

type failing struct{}

var errFull = errors.New("no space left")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestFailingWriterDoesNotHoldTheProgram(t *testing.T) {
	p := begun(t, shell(t, `head -c 1000000 /dev/zero; exit 5`, failing{}))
	if outcome, err := p.Wait(); outcome.ExitCode != 5 || !errors.Is(err, errFull) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestStdinThatIsNotRead covers a program that ends before it has read what it was given.
func TestStdinThatIsNotRead(t *testing.T) {
	spec := shell(t, `exit 0`, nil)
	spec.Stdin = io.LimitReader(neverEnding{}, 10<<20)
	if outcome := ran(t, spec); outcome.ExitCode != 0 {
		t.Errorf("outcome is %+v", outcome)
	}
}

type neverEnding struct{}

func (neverEnding) Read(b []byte) (int, error) { return len(b), nil }

func TestChildGetsWhatItIsGivenAndNoMore(t *testing.T) {
	leak, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD, 50) // open, and not closed on exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	out := newTap()
	spec := shell(t, `for f in /proc/$$/fd/*; do echo "fd ${f##*/}"; done; grep -E '^(NoNewPrivs|SigIgn|SigBlk):' /proc/self/status
		(: </dev/tty) 2>/dev/null && echo has a terminal; [ $(ps -o sid= -p $$) = $$ ] && echo own session
		echo umask $(umask) files $(ulimit -n) core $(ulimit -c); read x || echo stdin is empty; tr '\0' '|' </proc/$$/cmdline; echo; pwd -P`, out)
	spec.Argv[0] = "proposed-name"
	spec.Umask = 0o077
	spec.Rlimits = Rlimits{OpenFiles: 77, NoCoreDumps: true}
	spec.Dir = "/usr"
	ran(t, spec)
	got := out.String()
	for _, want := range []string{"fd 0\n", "fd 1\n", "fd 2\n", "NoNewPrivs:\t1\n", "SigBlk:\t0000000000000000\n", "SigIgn:\t0000000000000000\n",
		"own session\n", "umask 0077 files 77 core 0\n", "stdin is empty\n", "proposed-name|-c|", "\n/usr\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	fds := 0
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "fd ") {
			fds++
		}
		if line == "has a terminal\n" || line == "fd 50\n" {
			t.Errorf("the child sees too much: %s", line)
		}
	}
	if fds > 4 { // the shell has one open to list the folder
		t.Errorf("the child has %d descriptors:\n%s", fds, got)
	}
}

func TestEnvironmentIsExact(t *testing.T) {
	env, err := Resolve("env", "/", os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	out := newTap()
	ran(t, Spec{Argv: []string{"env"}, Path: env, Dir: "/", Env: []string{"A=1", MarkerVariable + "=forged", "B=x\ny"}, Marker: "mine", Stdout: out})
	if want := "A=1\nB=x\ny\n" + MarkerVariable + "=mine\n"; out.String() != want {
		t.Errorf("environment is %q, want %q", out, want)
	}
}

func TestResourcesAreCounted(t *testing.T) {
	outcome := ran(t, shell(t, `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done`, nil))
	if outcome.User+outcome.System == 0 || outcome.MaxRSSBytes < 100<<10 || outcome.Wall <= 0 || outcome.Ended < outcome.Wall {
		t.Errorf("outcome is %+v", outcome)
	}
}

func TestCrewKeepsStewards(t *testing.T) {
	var crew Crew
	run := func(script string) string {
		out := newTap()
		p, err := crew.Start(context.Background(), shell(t, script, out))
		if err != nil {
			t.Fatal(err)
		}
		ended(t, p)
		return strings.TrimSpace(out.String())
	}
	first := run(`echo $PPID`)
	if again := run(`echo $PPID`); again != first {
		t.Errorf("steward %s was not used again, but %s", first, again)
	}
	for range 5 { // also at once, before the steward can say another word
		run(`kill -9 $PPID; sleep 300`)
	}
	if after := run(`echo $PPID`); after == first || after == "" {
		t.Errorf("after the steward's death the parent is %q", after)
	}
	_, err := crew.Start(t.Context(), Spec{Argv: []string{"x"}, Path: "/nothing/here", Dir: "/"})
	codeIs(t, err, CodeNoProgram)
	crew.Close()
	_, err = crew.Start(t.Context(), shell(t, `true`, nil))
	codeIs(t, err, CodeSteward)
}

func TestNotStarted(t *testing.T) {
	dir := place(t)
	written(t, dir+"/plain", "text", 0o644)
	written(t, dir+"/noformat", "just text\n", 0o755)
	written(t, dir+"/nointerp", "#!/nothing/here\n", 0o755)
	if err := os.Symlink("/usr", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code   string
		change func(*Spec)
	}{
		{CodeNoProgram, func(s *Spec) { s.Path = dir + "/missing" }},
		{CodeNotExecutable, func(s *Spec) { s.Path = dir + "/plain" }},
		{CodeNotExecutable, func(s *Spec) { s.Path = dir + "/noformat" }},
		{CodeNotExecutable, func(s *Spec) { s.Path = dir }},
		{CodeNoInterpreter, func(s *Spec) { s.Path = dir + "/nointerp" }},
		{CodeNoDir, func(s *Spec) { s.Dir = dir + "/missing" }},
		{CodeNoDir, func(s *Spec) { s.Dir = dir + "/plain" }},
		{CodeDirChanged, func(s *Spec) { s.Dir = dir + "/link/bin" }},
		{CodeTooLarge, func(s *Spec) { s.Argv = append(s.Argv, strings.Repeat("x", 300<<10)) }},
		{CodeDigestChanged, func(s *Spec) { s.ExpectSHA256 = strings.Repeat("0", 64) }},
		{CodeDigestChanged, func(s *Spec) { s.Files = []FileDigest{{dir + "/plain", strings.Repeat("0", 64)}} }},
		{CodeDigestChanged, func(s *Spec) { s.Files = []FileDigest{{dir + "/missing", strings.Repeat("0", 64)}} }},
		{CodeNotRegular, func(s *Spec) { s.Files = []FileDigest{{"/dev/zero", strings.Repeat("0", 64)}} }},
		{CodeBadSpec, func(s *Spec) { s.Argv = nil }},
		{CodeBadSpec, func(s *Spec) { s.Argv = append(s.Argv, "a\x00b") }},
		{CodeBadSpec, func(s *Spec) { s.Dir = "relative" }},
		{CodeBadSpec, func(s *Spec) { s.Hide = []string{"/"} }},
	} {
		spec := shell(t, `echo must not run`, nil)
		out := newTap()
		spec.Stdout, spec.Stderr = out, out
		c.change(&spec)
		_, err := Start(t.Context(), spec)
		codeIs(t, err, c.code)
		if out.String() != "" {
			t.Errorf("%s: the program ran", c.code)
		}
	}
}
