package proc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/lab/need"
)

func needNamespaces(t *testing.T) {
	t.Helper()
	if err := Namespaces(os.TempDir()); err != nil {
		need.Missing(t, "%v", err)
	}
}

// hidden makes a folder with a secret and a part that stays visible, and a Spec that hides it.
func hidden(t *testing.T, script string, out *tap) (Spec, string) {
	t.Helper()
	needNamespaces(t)
	dir := place(t)
	for _, path := range []string{dir + "/keys", dir + "/run/proposer"} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	written(t, dir+"/keys/sign", "secret", 0o644)
	written(t, dir+"/token", "a token", 0o644)
	spec := shell(t, script, out)
	spec.Hide = []string{dir, dir + "/keys"}
	spec.Expose = []string{dir + "/run/proposer", dir + "/token"}
	spec.Env = append(spec.Env, "D="+dir, fmt.Sprintf("OWNER=%d", os.Getpid()))
	return spec, dir
}

func TestHideCoversAndExposes(t *testing.T) {
	out := newTap()
	spec, dir := hidden(t, `find $D | sort; cat $D/token; id -u; (: >$D/new); (: >$D/run/new); (: >$D/run/proposer/new); ls -A $D/keys`, out)
	listener, err := net.Listen("unix", dir+"/run/proposer/s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if outcome := ran(t, spec); outcome.PID == 0 {
		t.Errorf("outcome is %+v", outcome)
	}
	want := strings.ReplaceAll("D\nD/run\nD/run/proposer\nD/run/proposer/s\nD/token\na token", "D", dir)
	want += fmt.Sprintf("%d\n", os.Getuid())
	if got := out.String(); !strings.HasPrefix(got, want) {
		t.Errorf("the job sees %q, want %q", got, want)
	}
	if _, err := os.Stat(dir + "/run/proposer/new"); err != nil {
		t.Errorf("what is exposed cannot be written: %v", err)
	}
	for _, path := range []string{dir + "/new", dir + "/run/new"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s came through the cover", path)
		}
	}
	if text, err := os.ReadFile(dir + "/keys/sign"); err != nil || string(text) != "secret" {
		t.Errorf("the owner's own view changed: %q, %v", text, err)
	}
}

// TestHideHolds tries to get behind the cover in the ways that are known. Each attempt prints what it reads.
func TestHideHolds(t *testing.T) {
	for name, attempt := range map[string]string{
		"plain":                `cat $D/keys/sign`,
		"take the cover off":   `umount $D; umount -l $D; cat $D/keys/sign`,
		"in a namespace":       `unshare -Urm sh -c 'umount $D; umount -l $D; cat $D/keys/sign'`,
		"bind around":          `mkdir $T/m; unshare -Urm sh -c 'mount --bind / $T/m; cat $T/m$D/keys/sign'; mount --bind / $T/m; cat $T/m$D/keys/sign`,
		"move the cover":       `mkdir $T/m; unshare -Urm sh -c 'mount --move $D $T/m; cat $D/keys/sign'; mount --move $D $T/m; cat $D/keys/sign`,
		"owner's root":         `cat /proc/$OWNER/root$D/keys/sign /proc/$OWNER/cwd/../..$D/keys/sign`,
		"steward's root":       `cat /proc/$PPID/root$D/keys/sign; ls -l /proc/$PPID/fd`,
		"owner's environment":  `tr '\0' '\n' </proc/$OWNER/environ | sed 's/.*/secret/'`,
		"owner's memory":       `head -c 1 /proc/$OWNER/mem; : </proc/$OWNER/mem && echo secret`,
		"owner's namespace":    `nsenter -t $OWNER -m cat $D/keys/sign; nsenter -t $OWNER -U -m cat $D/keys/sign`,
		"steward's namespace":  `nsenter -t $PPID -m umount $D; cat $D/keys/sign; nsenter -t $PPID -U -m umount $D; cat $D/keys/sign`,
		"first process's root": `cat /proc/1/root$D/keys/sign`,
		"anybody's root":       `cat /proc/[0-9]*/root$D/keys/sign`,
	} {
		t.Run(name, func(t *testing.T) {
			out := newTap()
			spec, _ := hidden(t, attempt, out)
			spec.Env = append(spec.Env, "T="+place(t))
			ran(t, spec)
			for line := range strings.Lines(out.String()) {
				if strings.TrimSpace(line) == "secret" {
					t.Fatalf("the job got behind the cover:\n%s", out)
				}
			}
		})
	}
}

func TestHiddenPlacesCannotBeUsed(t *testing.T) {
	spec, dir := hidden(t, `true`, newTap())
	spec.Dir = dir + "/keys"
	_, err := Start(t.Context(), spec)
	codeIs(t, err, CodeNoDir)
	spec.Dir, spec.Path = "/", dir+"/keys/sign"
	_, err = Start(t.Context(), spec)
	codeIs(t, err, CodeNoProgram)
	spec.Hide = []string{dir + "/missing"}
	_, err = Start(t.Context(), spec)
	codeIs(t, err, CodeNoNamespace)
}

func TestHiddenTreeEnds(t *testing.T) {
	out := newTap()
	spec, _ := hidden(t, `env -i setsid sleep 300 & echo pid $!; sleep 300 & echo pid $!; exit 4`, out)
	p := begun(t, spec)
	if outcome := ended(t, p); outcome.ExitCode != 4 || outcome.LeftBehind != 2 {
		t.Errorf("outcome is %+v", outcome)
	}
	mustBeGone(t, p.Marker(), out.String())
}

// A program is told by the kernel where it is, behind every wall there is.
func TestProgramKnowsWhereItIs(t *testing.T) {
	text, err := os.ReadFile("/proc/self/exe") // whose path an ordinary user may not see
	if err != nil {
		t.Fatal(err)
	}
	self := written(t, place(t)+"/where", string(text), 0o755)
	for name, change := range map[string]func(*testing.T, *Spec){
		"plain":  func(*testing.T, *Spec) {},
		"hidden": func(t *testing.T, s *Spec) { needNamespaces(t); s.Hide = []string{place(t)} },
		"walled": func(t *testing.T, s *Spec) { needLandlock(t); s.Reach = &Reach{Read: []string{"/"}} },
		"everything": func(t *testing.T, s *Spec) {
			needNamespaces(t)
			needLandlock(t)
			s.Hide, s.Reach = []string{place(t)}, &Reach{Read: []string{"/"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := newTap()
			spec := shell(t, "", out)
			spec.Path, spec.Argv, spec.Dir = self, []string{"where"}, place(t)
			spec.Env = append(spec.Env, whereVariable+"=1")
			change(t, &spec)
			ran(t, spec)
			if got := out.String(); got != spec.Dir+" <nil>\n" {
				t.Errorf("the program is in %s, and was told %q", spec.Dir, got)
			}
		})
	}
}

// A folder that is exchanged for a link again and again, while programs are started
// in it, never makes one run elsewhere.
func TestExchangedFolderIsNotEntered(t *testing.T) {
	for _, hide := range []bool{false, true} {
		root := place(t)
		dir, away, elsewhere := root+"/dir", root+"/away", place(t)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = errors.Join(os.Rename(dir, away), os.Symlink(elsewhere, dir), os.Remove(dir), os.Rename(away, dir))
				<-time.After(time.Duration(rand.Int64N(int64(4 * time.Millisecond))))
			}
		}()
		inside, refused := 0, 0
		var crew Crew
		hidden := place(t)
		for range 60 {
			out := newTap()
			spec := shell(t, "readlink /proc/self/cwd", out)
			spec.Dir = dir
			if hide {
				needNamespaces(t)
				spec.Hide = []string{hidden}
			}
			p, err := crew.Start(t.Context(), spec)
			var start *StartError
			switch {
			case errors.As(err, &start) && (start.Code == CodeDirChanged || start.Code == CodeNoDir),
				hide && errors.As(err, &start) && start.Code == CodeNoInterpreter: // fork tells a missing folder and a missing interpreter apart no better
				refused++
				continue
			case err != nil:
				t.Errorf("hidden %t: %v", hide, err)
				continue
			}
			ended(t, p)
			if got := strings.TrimSpace(out.String()); got != dir && got != away {
				t.Errorf("hidden %t: the program ran in %s", hide, got)
			}
			inside++
		}
		crew.Close()
		close(stop)
		<-stopped
		t.Logf("hidden %t: %d ran, %d were refused", hide, inside, refused)
	}
}
