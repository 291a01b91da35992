package hook

import (
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const others = `{
  "model": "opus",
  "big": 12345678901234567890,
  "hooks": {
    "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}],
    "PreToolUse": [
      {"matcher": "Write", "hooks": [{"type": "command", "command": "guard hook claude || exit 2"}]}
    ]
  },
  "permissions": {"deny": ["Read(./.env)"]}
}`

func install(t *testing.T, settings string, f Follower) string {
	t.Helper()
	out, err := Install([]byte(settings), f)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestInstallKeepsWhatIsThere(t *testing.T) {
	once := install(t, others, here)
	for _, s := range []string{`"model": "opus"`, "12345678901234567890", `"guard hook claude || exit 2"`, `"Read(./.env)"`, `"/opt/bin/banksman hook claude || exit 2"`, `"timeout": 60`, `"onFailure": "block"`} {
		if strings.Count(once, s) != 1 {
			t.Errorf("want %s once:\n%s", s, once)
		}
	}
	if strings.Index(once, `"model"`) > strings.Index(once, `"big"`) || strings.Index(once, `"PostToolUse"`) > strings.Index(once, `"PreToolUse"`) || strings.Index(once, `"hooks"`) > strings.Index(once, `"permissions"`) {
		t.Errorf("the order has changed:\n%s", once)
	}
	if twice := install(t, once, here); twice != once {
		t.Errorf("installing again changes something:\n%s", cmp.Diff(once, twice))
	}
	moved := install(t, once, Follower{Program: "/elsewhere/banksman", Dir: "/a site"})
	if strings.Contains(moved, "/opt/bin") || strings.Count(moved, "/elsewhere/banksman --dir '/a site' hook claude || exit 2") != 1 {
		t.Errorf("the older entry was not replaced:\n%s", moved)
	}
	back, err := Uninstall([]byte(moved))
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(others), &a), json.Unmarshal(back, &b)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("uninstalling leaves a difference:\n%s", d)
	}
}

func TestInstallIntoNothing(t *testing.T) {
	for _, empty := range []string{"", " \n", "{}", `{"hooks":{}}`} {
		out := install(t, empty, here)
		back, err := Uninstall([]byte(out))
		if err != nil || strings.TrimSpace(string(back)) != "{}" {
			t.Errorf("%q: after uninstall %q (%v)", empty, back, err)
		}
	}
	if out, err := Uninstall([]byte(others)); err != nil || string(out) != others {
		t.Errorf("uninstalling nothing changes something: %v", err)
	}
}

// An entry that a person shares between our hook and another keeps the other.
func TestSharedEntryKeepsTheOther(t *testing.T) {
	shared := `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"log"},{"type":"command","command":"/old/banksman hook claude || exit 2"}]}]}}`
	out := install(t, shared, here)
	if !strings.Contains(out, `"log"`) || strings.Contains(out, "/old/banksman") || strings.Count(out, entryEnd) != 1 {
		t.Error(out)
	}
}

func TestUnreadableSettingsAreLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"a list": "[]", "a comment": "{ // mine\n}", "trailing comma": `{"a":1,}`, "repeated name": `{"hooks":{},"hooks":{}}`, "two objects": "{} {}",
		"hooks is a list": `{"hooks":[]}`, "hooks is null": `{"hooks":null}`, "entries are an object": `{"hooks":{"PreToolUse":{}}}`,
		"entry is a text": `{"hooks":{"PreToolUse":["x"]}}`, "hooks of an entry": `{"hooks":{"PreToolUse":[{"hooks":"x"}]}}`, "cut off": `{"hooks":{"PreToolUse":[`,
	} {
		if out, err := Install([]byte(text), here); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

func FuzzInstall(f *testing.F) {
	f.Add([]byte(others))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"hooks":{"PreToolUse":[{"hooks":[{"command":"/x/banksman hook claude || exit 2"}]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := Install(data, here)
		if err != nil {
			return
		}
		twice, err := Install(once, here)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("not idempotent: %v\n%s\n%s", err, once, twice)
		}
		bare, err := Uninstall(once)
		if err != nil || strings.Contains(string(bare), here.EntryCommand()) && !strings.Contains(string(data), "hook claude") {
			t.Fatalf("not undone: %v\n%s", err, bare)
		}
	})
}
