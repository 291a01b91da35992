package proc

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLimitsHold(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		limits Rlimits
		want   func(Outcome, string) bool
	}{
		"processor time": {`while :; do :; done`, Rlimits{CPUSeconds: 1},
			func(o Outcome, _ string) bool { return o.Signal == "SIGXCPU" }},
		"memory": {`x=$(head -c 200000000 /dev/zero | tr '\0' x); echo "${#x}"`, Rlimits{AddressSpaceBytes: 64 << 20},
			func(_ Outcome, got string) bool { return !strings.Contains(got, "200000000") }},
		"open files": {`exec 2>/dev/null; for n in 3 4 5 6 7; do eval "exec $n</dev/null"; done; cat /dev/null || echo too many`, Rlimits{OpenFiles: 8},
			func(o Outcome, got string) bool { return o.ExitCode != 0 || strings.Contains(got, "too many") }},
		"file size": {`trap '' XFSZ; head -c 100000 /dev/zero > "$FILE"; wc -c < "$FILE"`, Rlimits{FileSizeBytes: 4096},
			func(_ Outcome, got string) bool { return strings.Contains(got, "4096\n") }},
		"nothing": {`for n in 3 4 5 6 7; do eval "exec $n</dev/null"; done; cat /dev/null && echo fine`, Rlimits{},
			func(o Outcome, got string) bool { return o.ExitCode == 0 && strings.Contains(got, "fine") }},
	} {
		out := newTap()
		spec := shell(t, c.script, out)
		spec.Rlimits = c.limits
		spec.Env = append(spec.Env, "FILE="+t.TempDir()+"/file")
		if o := ran(t, spec); !c.want(o, out.String()) {
			t.Errorf("%s: outcome %+v, output %q", name, o, out.String())
		}
	}
}

func TestNice(t *testing.T) {
	out := newTap()
	spec := shell(t, "nice", out)
	spec.Nice = 7
	for _, spec.AllowNewPrivileges = range []bool{false, true} {
		ran(t, spec)
	}
	if got := out.String(); got != "7\n7\n" {
		t.Errorf("nice says %q", got)
	}
	spec.Nice = 20
	if _, err := Start(t.Context(), spec); !errors.Is(err, &StartError{Code: CodeBadSpec}) {
		t.Errorf("nice 20: %v", err)
	}
}

// The job runs as somebody else, with and without folders hidden, is still ended
// with its whole tree, and keeps its output.
func TestUserSwitch(t *testing.T) {
	const nobody, games = 65534, 60
	out := newTap()
	spec := shell(t, `id -u; id -g; id -G; cat /proc/self/status | grep CapEff; (trap '' TERM; setsid sleep 600) & echo over`, out)
	spec.User = &User{UID: nobody, GID: nobody, Groups: []uint32{games}}
	spec.Grace = 100 * time.Millisecond
	if os.Geteuid() != 0 {
		if _, err := Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "only root") {
			t.Errorf("started by an ordinary user: %v", err)
		}
		return
	}
	want := "65534\n65534\n65534 60\nCapEff:\t0000000000000000\nover\n"
	o := ran(t, spec)
	if got := out.String(); got != want || len(o.Survivors) > 0 || o.LeftBehind == 0 {
		t.Errorf("the job said %q, and ended as %+v", got, o)
	}
	if err := Namespaces(os.TempDir()); err != nil {
		t.Log("not tried with hidden folders:", err)
		return
	}
	out = newTap()
	spec.Stdout, spec.Stderr, spec.Hide = out, out, []string{t.TempDir()}
	o = ran(t, spec)
	if got := out.String(); got != want || len(o.Survivors) > 0 {
		t.Errorf("with folders hidden the job said %q, and ended as %+v", got, o)
	}
}

// Processor time and memory are those of the tree: a daemon that left counts as
// much as a child that was waited for.
func TestUsageIsOfTheWholeTree(t *testing.T) {
	busy := `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`
	alone := ran(t, shell(t, busy, nil))
	spec := shell(t, `cd "$D"; mkfifo end; sh -c '`+busy+`'; setsid sh -c '`+busy+`; echo > end' & read x < end`, nil)
	spec.Env = append(spec.Env, "D="+t.TempDir())
	both := ran(t, spec)
	if one, two := alone.User+alone.System, both.User+both.System; two < one*5/4 {
		t.Errorf("one busy process %s, two of them %s", one, two)
	}
	out := newTap()
	fat := ran(t, shell(t, `sh -c 'x=$(head -c 40000000 /dev/zero | tr "\0" x); : ; echo ${#x}'; true`, out))
	if fat.MaxRSSBytes < 40<<20 {
		t.Errorf("peak memory %d bytes with a grandchild that held 40 MB (%s)", fat.MaxRSSBytes, out)
	}
}
