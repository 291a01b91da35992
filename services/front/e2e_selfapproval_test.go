package front_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
)

// attempts is what an agent that runs as a job tries in order to approve its own
// next request. Each line prints "open: WHAT" when it got through.
const attempts = `#!/bin/sh
dir=$1 job=$2 up=$3 banksman=$4 url=$5
got() { echo "open: $*"; }
ls "$dir" 2>/dev/null | grep -q . && got "the folder's contents"
cat "$dir"/keys/* 2>/dev/null | grep -q . && got "key files"
cat "$dir"/tokens/* 2>/dev/null | grep -q . && got "tokens"
umount "$dir" 2>/dev/null && ls "$dir" | grep -q . && got "the folder after umount"
umount -l "$dir" 2>/dev/null && ls "$dir" | grep -q . && got "the folder after a lazy umount"
ls "/proc/$up/root$dir" 2>/dev/null | grep -q . && got "the folder through the role process's root"
ls "/proc/$up/cwd/" >/dev/null 2>&1 && got "the role process's working folder"
cat "/proc/$up/environ" 2>/dev/null | grep -q . && got "the role process's environment"
head -c 1 "/proc/$up/mem" 2>&1 | grep -qi 'input/output error' && got "the role process's memory"
cat "/proc/$up/maps" 2>/dev/null | grep -q . && got "the role process's map"
nsenter --mount="/proc/$up/ns/mnt" ls "$dir" 2>/dev/null | grep -q . && got "the role process's mounts"
cat "/proc/$up/fd/"* 2>/dev/null | grep -q . && got "the role process's descriptors"
kill -0 "$up" 2>/dev/null && kill -STOP "$up" 2>/dev/null && kill -CONT "$up" && echo "note: signals reach the role process"
for p in /proc/[0-9]*; do ls "$p/root$dir/keys" 2>/dev/null | grep -q . && got "keys through $p"; done
BANKSMAN_DIR=$dir "$banksman" approve "$job" >/dev/null 2>&1 && got "the approve verb"
BANKSMAN_DIR=$dir "$banksman" propose -- true >/dev/null 2>&1 && got "the proposer's socket"
own=$(mktemp -d)/own # a site of one's own, pointed at the real bus
BANKSMAN_DIR=$own "$banksman" init --no-passphrase >/dev/null 2>&1
sed -i "s|^bus_url = .*|bus_url = \"$url\"|" "$own/banksman.toml"
BANKSMAN_DIR=$own "$banksman" approve "$job" >/dev/null 2>&1 && got "the bus's port with a key of its own"
BANKSMAN_DIR=$own "$banksman" ls >/dev/null 2>&1 && got "the bus's port to read"
rm -rf "$own"
[ -n "$BANKSMAN_TOKEN$BANKSMAN_DIR$BANKSMAN_SOCKET" ] && got "variables of the site"
ls /proc/self/fd | grep -qv '^[0123]$' && got "inherited descriptors"
echo "tried everything as $(id -u)"
`

// An agent must not be able to approve itself: not by the verb, not by the key
// files, the sockets, the role processes or the port.
func TestJobCannotApproveItself(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	dir := t.TempDir()
	script := filepath.Join(dir, "agent.sh")
	if err := os.WriteFile(script, []byte(attempts), 0o755); err != nil {
		t.Fatal(err)
	}
	target := strings.TrimSpace(s.Must(0, "propose", "--", "sh", "-c", "echo owned").Stdout)
	lab.Eventually(t, "the target to wait", func() bool { return show(t, s, target).Status == lifecycle.Pending })

	agent := s.Must(0, "propose", "--cwd", dir, "--", "sh", script, s.Dir, target, fmt.Sprint(up.Pid()), binary, busURL(t, s))
	id := strings.TrimSpace(agent.Stdout)
	s.Must(0, "approve", id)
	lab.Eventually(t, "the agent to end", func() bool { return show(t, s, id).Status.Final() })
	r := show(t, s, id).Result
	if r == nil || !strings.Contains(r.Stdout, "tried everything") {
		t.Fatalf("the agent did not try everything: %+v", r)
	}
	for line := range strings.Lines(r.Stdout) {
		if strings.HasPrefix(line, "open: ") {
			t.Errorf("the agent reached %s", strings.TrimPrefix(line, "open: "))
		}
	}
	if j := show(t, s, target); j.Status != lifecycle.Pending {
		t.Errorf("the target is %s", j.Status)
	}
}

// Where jobs share the worker's user, everything that shows a decision says so.
func TestUnsafeSharedUserIsShown(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up("--unsafe-shared-user")
	if r := s.Must(0, "status"); !strings.Contains(r.Stdout, "can reach the files of banksman") {
		t.Errorf("status does not say so: %s", r)
	}
	s.Must(0, "propose", "--", "sh", "-c", "true")
	j := pending(t, s)
	if !j.Unsafe || !strings.Contains(s.Must(0, "inbox").Stdout, "shared user") {
		t.Errorf("the inbox does not say so: %+v", j)
	}
	if r := s.Must(0, "approve", j.Job); !strings.Contains(r.Stderr, "WARNING") {
		t.Errorf("approve does not say so: %s", r)
	}
	if a := show(t, s, j.Job).Approvals; len(a) != 1 || !a[0].UnsafeSharedUser {
		t.Errorf("the approval does not say so: %+v", a)
	}
}

// busURL is where the site's bus listens.
func busURL(t *testing.T, s *lab.Site) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "banksman.toml"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "bus_url = \"")
	url, _, ok := strings.Cut(after, "\"")
	if !ok {
		t.Fatal("the configuration names no bus")
	}
	return url
}
