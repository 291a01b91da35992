package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func FuzzParseStat(f *testing.F) {
	tail := " S 7 3 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1"
	for _, name := range []string{"(sh)", "(a b)", "(a) S 1 (b)", "()", "(", ""} {
		f.Add("42 "+name+tail, 42)
	}
	f.Fuzz(func(t *testing.T, text string, pid int) {
		parseStat([]byte(text)) // must not panic
		got, ok := parseStat(fmt.Appendf(nil, "%d (%s)%s", pid, text, tail))
		if pid >= 0 && (!ok || got.pid != pid || got.parent != 7 || got.start != 4711 || got.state != 'S') {
			t.Errorf("a command named %q gives %+v, %v", text, got, ok)
		}
	})
}

func TestGroupMount(t *testing.T) {
	const hybrid = "30 20 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw\n31 20 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:1 - cgroup2 cgroup2 rw\n"
	for mounts, want := range map[string]string{
		hybrid: "/sys/fs/cgroup/unified",
		"31 20 0:27 /sub /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n": "",
		"garbage\n": "",
		"":          "",
	} {
		if got := groupMount(mounts); got != want {
			t.Errorf("mount is %q, want %q", got, want)
		}
	}
}

func TestRemoveStaleGroups(t *testing.T) {
	own := t.TempDir() // a plain folder: like a control group it can only be removed when it is empty
	for _, path := range []string{"banksman-old", "banksman-used/member", "banksman-young", "other"} {
		if err := os.MkdirAll(filepath.Join(own, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"banksman-old", "banksman-used", "other"} {
		old := time.Now().Add(-2 * staleAfter)
		if err := os.Chtimes(filepath.Join(own, path), old, old); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(own)
	entries, err := os.ReadDir(own)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := []string{"banksman-used", "banksman-young", "other"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}
