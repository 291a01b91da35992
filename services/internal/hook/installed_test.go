package hook

import (
	"errors"
	"strings"
	"testing"
)

func TestInstalledFindsOurs(t *testing.T) {
	for _, f := range []Follower{{Program: "/opt/bin/banksman"}, {Program: "/opt/bin/banksman", Dir: "/srv/it's here", Caller: true}} {
		text, err := Install([]byte(`{"hooks":{"PreToolUse":[{"matcher":"Read","hooks":[{"type":"command","command":"other || exit 2"}]}]}}`), f)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Installed(text)
		if err != nil || len(found) != 1 || found[0] != (Entry{Command: f.EntryCommand(), Blocks: true, Covers: true}) {
			t.Errorf("%+v, %v", found, err)
		}
		weak := strings.NewReplacer(`"onFailure": "block"`, `"onFailure": "x"`, "REPL", "REPLY").Replace(string(text))
		if found, err := Installed([]byte(weak)); err != nil || len(found) != 1 || found[0].Blocks || found[0].Covers {
			t.Errorf("%+v, %v", found, err)
		}
	}
	for _, none := range []string{"", " ", "{}", `{"hooks":{}}`, `{"hooks":{"PreToolUse":[]}}`} {
		if found, err := Installed([]byte(none)); err != nil || len(found) != 0 {
			t.Errorf("%q: %+v, %v", none, found, err)
		}
	}
	for _, bad := range []string{"[]", `{"hooks":[]}`, `{"hooks":{"PreToolUse":[1]}}`, "{ // mine\n}"} {
		if _, err := Installed([]byte(bad)); !errors.Is(err, ErrSettings) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The probes are calls that a hook can read, and none of them may become a job.
func TestProbes(t *testing.T) {
	wants := map[string]Way{"a harmless tool": Pass, "a command that is refused": Gate, "code that no worker can run": Refuse}
	for _, p := range Probes() {
		c, err := Read([]byte(p.Input))
		if want, known := wants[p.Name]; known != (err == nil) || known && c.Way(here) != want {
			t.Errorf("%s: way %d, %v", p.Name, c.Way(here), err)
		}
		if text, err := c.command(); p.Name == "a command that is refused" && (err != nil || !strings.Contains(text, "\x1b")) {
			t.Errorf("the proposer would take %q (%v)", text, err)
		}
		deny := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`
		for _, o := range []struct {
			code int
			out  string
			met  string
		}{{0, "", "nothing"}, {0, deny, "deny"}, {2, "", "block"}, {1, "", ""}, {0, strings.Replace(deny, "deny", "allow", 1), ""}, {127, "", ""}} {
			if p.Met(o.code, o.out) != (p.Wants == o.met) {
				t.Errorf("%s with exit %d and %q", p.Name, o.code, o.out)
			}
		}
	}
}
