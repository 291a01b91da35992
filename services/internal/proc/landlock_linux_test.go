package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/services/internal/lab/need"
)

func needLandlock(t *testing.T) int {
	t.Helper()
	version, err := Landlock()
	if err != nil {
		need.Missing(t, "%v", err)
	}
	return version
}

// attempts tries what a program with a reach may do, $IN, and what it may not, $OUT; each line that says "bad" is wrong.
const attempts = `
echo in >$IN/new && mkdir $IN/d && mv $IN/new $IN/d/moved && cat $IN/d/moved && rm -r $IN/d || echo bad: inside
: >/dev/null && head -c 4 /dev/zero | wc -c || echo bad: devices
cat $SEE/seen || echo bad: cannot read
(: >>$SEE/seen) && echo bad: wrote what may be read
(: >$OUT/new) && echo bad: wrote outside
(: >$OUT/kept) && echo bad: emptied a file outside
cat $OUT/kept && echo bad: read outside
ls $OUT && echo bad: listed outside
mv $SEE/seen $IN && echo bad: moved something in
ln $SEE/seen $IN/link && echo bad: linked something in
ln -s $OUT $IN/way; (: >$IN/way/new) && echo bad: wrote through a link; rm $IN/way
echo over`

// walled is a Spec whose program may change $IN, read $SEE and the system's folders, and knows $OUT.
func walled(t *testing.T, script string, out *tap) (Spec, map[string]string) {
	t.Helper()
	dirs := map[string]string{"IN": place(t), "SEE": place(t), "OUT": place(t)}
	spec := shell(t, script, out)
	for name, dir := range dirs {
		spec.Env = append(spec.Env, name+"="+dir)
	}
	written(t, dirs["SEE"]+"/seen", "seen\n", 0o666)
	written(t, dirs["OUT"]+"/kept", "kept\n", 0o666)
	spec.Dir = dirs["IN"]
	spec.Reach = &Reach{Read: []string{dirs["SEE"], "/usr", "/etc", "/proc"}, Write: []string{dirs["IN"]}}
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/sbin"} { // links into /usr on most systems, folders on others
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			spec.Reach.Read = append(spec.Reach.Read, dir)
		}
	}
	return spec, dirs
}

// A program with a reach keeps to it, however it was started, and one without it that the same steward starts next is
// free of it.
func TestReachHolds(t *testing.T) {
	needLandlock(t)
	for name, change := range map[string]func(*testing.T, *Spec){
		"plain":      func(*testing.T, *Spec) {},
		"descriptor": func(t *testing.T, s *Spec) { s.ExpectSHA256 = digestOf(t, s.Path) },
		"sealed":     func(t *testing.T, s *Spec) { s.ExpectSHA256, s.Sealed = digestOf(t, s.Path), true },
		"hidden": func(t *testing.T, s *Spec) {
			needNamespaces(t)
			s.Hide = []string{place(t)}
			s.ExpectSHA256 = digestOf(t, s.Path)
		},
		"other user": func(t *testing.T, s *Spec) {
			if os.Geteuid() != 0 {
				t.Skip("only root gives its jobs another user")
			}
			s.User = &User{UID: 65534, GID: 65534}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var crew Crew
			defer crew.Close()
			out := newTap()
			spec, dirs := walled(t, attempts, out)
			for _, dir := range dirs { // the folder above them is for its owner alone
				if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			change(t, &spec)
			p, err := crew.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			ended(t, p)
			if got := out.String(); strings.Contains(got, "bad:") || !strings.Contains(got, "seen\n") || !strings.HasSuffix(got, "over\n") || !strings.Contains(got, "Permission denied") {
				t.Errorf("the program said\n%s", got)
			}
			out = newTap()
			spec.Stdout, spec.Stderr, spec.Reach = out, out, nil
			spec.Argv = []string{"sh", "-c", `: >>$OUT/kept && cat $OUT/kept`}
			if p, err = crew.Start(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			ended(t, p)
			if got := out.String(); spec.User == nil && got != "kept\n" {
				t.Errorf("the next program, without a reach, said\n%s", got)
			}
		})
	}
}

// Behind its wall a program cannot harm who watches it, gets no covers off, and ends with its whole tree.
func TestReachProtectsTheSteward(t *testing.T) {
	version := needLandlock(t)
	out := newTap()
	spec, _ := walled(t, `
grep -q '^NoNewPrivs:.1' /proc/self/status || echo bad: may gain privileges
cat /proc/$PPID/environ >/dev/null && echo bad: read the steward
[ $VERSION -lt 6 ] || { kill -9 $PPID && echo bad: killed the steward; }
unshare -rm sh -c "umount $HIDDEN || umount -l $HIDDEN; ls -A $HIDDEN" | grep secret && echo bad: uncovered
umount $HIDDEN && echo bad: unmounted
(trap '' TERM; setsid sleep 300) & echo pid $!
echo over`, out)
	if Namespaces(os.TempDir()) == nil {
		hidden := place(t)
		written(t, hidden+"/secret", "x", 0o644)
		spec.Hide = []string{hidden}
		spec.Env = append(spec.Env, "HIDDEN="+hidden)
		spec.Reach.Read = append(spec.Reach.Read, hidden)
	}
	spec.Grace = 100e6
	spec.Env = append(spec.Env, fmt.Sprint("VERSION=", version))
	o := ran(t, spec)
	if got := out.String(); strings.Contains(got, "bad:") || !strings.HasSuffix(got, "over\n") || len(o.Survivors) > 0 || o.LeftBehind == 0 {
		t.Errorf("the program said\n%s\nand ended as %+v", got, o)
	}
	mustBeGone(t, "", out.String())
}

func TestReachThatCannotBeHadIsRefused(t *testing.T) {
	for _, c := range []struct {
		version int
		errno   unix.Errno
		want    string
	}{{0, unix.ENOSYS, "no Landlock"}, {0, unix.EOPNOTSUPP, "switched off"}, {0, unix.EPERM, "not permitted"}, {2, 0, "version 2"}} {
		if _, err := judgeLandlock(c.version, c.errno); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("version %d, %v: %v", c.version, c.errno, err)
		}
	}
	if version, err := judgeLandlock(3, 0); version != 3 || err != nil {
		t.Errorf("version 3: %d, %v", version, err)
	}
	spec := shell(t, "true", nil)
	spec.Reach, spec.AllowNewPrivileges = &Reach{}, true
	_, err := Start(t.Context(), spec)
	codeIs(t, err, CodeBadSpec)
	spec.AllowNewPrivileges, spec.Reach.Write = false, []string{"here"}
	_, err = Start(t.Context(), spec)
	codeIs(t, err, CodeBadSpec)
	spec.Reach.Write = []string{place(t) + "/missing"}
	_, err = Start(t.Context(), spec)
	codeIs(t, err, CodeNoReach) // with Landlock for the missing folder, without it for that
	if _, none := Landlock(); none == nil && !strings.Contains(err.Error(), "missing") {
		t.Errorf("%v", err)
	}
	spec, _ = walled(t, "true", nil)
	if spec.Reach.Read, spec.Argv = []string{"/proc"}, []string{"sh"}; needLandlock(t) > 0 {
		_, err = Start(t.Context(), spec)
		codeIs(t, err, CodeNotExecutable)
	}
}
