package imported

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTrailAndListTellTheSame(t *testing.T) {
	h, err := Read(fixture(t, "audit.jsonl"), fixture(t, "list.json"))
	if err != nil {
		t.Fatal(err)
	}
	if c := h.Chain; c == nil || c.Entries != 12 || c.Fault != "" || len(c.Head) != 64 {
		t.Fatalf("%+v", c)
	}
	if len(h.Jobs) != 4 {
		t.Fatalf("%d jobs", len(h.Jobs))
	}
	for i, want := range []string{"succeeded approved ann", "failed approved ann", "cancelled denied bob", "queued pending "} {
		j := h.Jobs[i]
		if got := j.Status + " " + j.Approval + " " + j.DecidedBy; got != want || j.Imported != AgentSafe || len(j.Entries) == 0 || len(j.Disagrees) > 0 {
			t.Errorf("job %d: %s, %d entries, %q", i, got, len(j.Entries), j.Disagrees)
		}
	}
	first := h.Jobs[0]
	if first.Argv[1] != "grüße 🦺 \"quoted\" \\ back" || first.Argv[2] != "tab\there\u007f\u0001" || *first.ExitCode != 0 || first.DecidedAt != time.UnixMilli(1788256800250).UTC() {
		t.Errorf("%+v", first)
	}
	if strings.Contains(first.Stdout, "ghp_") || !strings.Contains(first.Stdout, "redacted") {
		t.Errorf("a token was kept: %q", first.Stdout)
	}
}

// The trail alone makes the same jobs, but for what it does not record.
func TestTheTrailAlone(t *testing.T) {
	with, err := Read(fixture(t, "audit.jsonl"), fixture(t, "list.json"))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Read(fixture(t, "audit.jsonl"), nil)
	if err != nil || len(alone.Jobs) != len(with.Jobs) {
		t.Fatalf("%d jobs, %v", len(alone.Jobs), err)
	}
	for i, j := range alone.Jobs {
		w := with.Jobs[i]
		if j.ID != w.ID || j.Status != w.Status || j.Approval != w.Approval || j.DecidedBy != w.DecidedBy || strings.Join(j.Argv, "|") != strings.Join(w.Argv, "|") || j.Attempts != w.Attempts {
			t.Errorf("%+v\nwith the list %+v", j, w)
		}
	}
}

// Whatever is edited, removed, moved or repeated breaks the chain there.
func TestABrokenChainIsNamed(t *testing.T) {
	text := string(fixture(t, "audit.jsonl"))
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"an edited approver": {strings.Replace(text, `"decided_by": "ann"`, `"decided_by": "eve"`, 1), 2},
		"an edited command":  {strings.Replace(text, "exit 3", "exit 0", 1), 5},
		"a line removed":     {strings.Join(append(append([]string{}, lines[:4]...), lines[5:]...), ""), 5},
		"the first removed":  {strings.Join(lines[1:], ""), 1},
		"two swapped":        {lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], ""), 2},
		"a line twice":       {lines[0] + lines[0] + strings.Join(lines[1:], ""), 2},
		"an array":           {lines[0] + "[]\n" + strings.Join(lines[1:], ""), 2},
		"a member twice":     {strings.Replace(text, `"seq": 2`, `"seq": 2, "seq": 2`, 1), 2},
		"a torn tail":        {text[:len(text)-40], 12},
		"another number":     {strings.Replace(text, `"lease_until": 1788256835.000001`, `"lease_until": 1788256835.0`, 1), 3},
	} {
		entries, chain := readChain([]byte(c.text))
		if chain.Line != c.line || chain.Fault == "" || len(entries) != c.line-1 {
			t.Errorf("%s: %d entries, line %d: %s", name, len(entries), chain.Line, chain.Fault)
		}
	}
	if _, chain := readChain([]byte(strings.ReplaceAll(text, "\n", "\n\n"))); chain.Fault != "" || chain.Entries != 12 {
		t.Errorf("blank lines: %+v", chain)
	}
}

// A trail whose texts are all ASCII, as Python also writes them, has the hashes of
// that form.
func TestTheOtherFormOfTexts(t *testing.T) {
	var out bytes.Buffer
	if err := canonical(&out, []byte(`{"b":[1.50,true,null,"\u00e9 🦺"], "a":{"hash":"x"}, "hash":"y"}`), true, "hash"); err != nil {
		t.Fatal(err)
	}
	if want := `{"a":{"hash":"x"},"b":[1.50,true,null,"\u00e9 \ud83e\uddba"]}`; out.String() != want {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

// A list that says other things than the trail is not believed silently.
func TestTheyDisagree(t *testing.T) {
	trail, list := fixture(t, "audit.jsonl"), string(fixture(t, "list.json"))
	for from, to := range map[string]string{`"exit 3"`: `"exit 0"`, `"decided_by": "bob"`: `"decided_by": "eve"`, `"status": "failed"`: `"status": "succeeded"`} {
		if !strings.Contains(list, from) {
			t.Fatalf("the list has no %s", from)
		}
		h, err := Read(trail, []byte(strings.Replace(list, from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, j := range h.Jobs {
			n += len(j.Disagrees)
		}
		if n != 1 {
			t.Errorf("%s as %s: %d disagreements", from, to, n)
		}
	}
	h, err := Read(trail, []byte("[]"))
	if err != nil || len(h.Jobs) != 4 || len(h.Jobs[0].Disagrees) != 1 || h.Jobs[0].Status != "succeeded" {
		t.Errorf("an empty list: %+v, %v", h.Jobs, err)
	}
}

func TestWhatIsNoHistory(t *testing.T) {
	for _, c := range [][2]string{{"", "{}"}, {"", "[{}]"}, {"", `[{"id":"a"},{"id":"a"}]`}, {"hello\n", "[]"}, {"{}\n", ""}, {"", `[{"id":"a","command":"ls"}]`}} {
		var trail, list []byte
		if c[0] != "" {
			trail = []byte(c[0])
		}
		if c[1] != "" {
			list = []byte(c[1])
		}
		if _, err := Read(trail, list); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", c, err)
		}
	}
	if _, err := Read(nil, nil); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

func TestItIsKept(t *testing.T) {
	dir := t.TempDir()
	if h, err := Load(dir); err != nil || len(h.Jobs) != 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	h, err := Read(fixture(t, "audit.jsonl"), fixture(t, "list.json"))
	if err == nil {
		err = Save(dir, h)
	}
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(dir)
	if err != nil || len(back.Jobs) != 4 || *back.Chain != *h.Chain {
		t.Errorf("%+v, %v", back, err)
	}
	if info, err := os.Stat(File(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if j, ok := back.Find(h.Jobs[1].ID[:6]); !ok || j.ID != h.Jobs[1].ID {
		t.Errorf("%+v, %v", j, ok)
	}
	if _, ok := back.Find(""); ok {
		t.Error("no prefix names a job")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(fixture(f, "audit.jsonl"), fixture(f, "list.json"))
	f.Add([]byte(`{"seq":1,"timestamp":"","event":"job.submitted","prev_hash":null,"data":{"job_id":"a"},"hash":""}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, trail, list []byte) {
		h, err := Read(trail, list)
		if err == nil && h.Jobs == nil {
			t.Error("a history without jobs is an empty list")
		}
		if h.Chain != nil && h.Chain.Fault == "" && h.Chain.Entries > bytes.Count(trail, []byte("\n"))+1 {
			t.Errorf("%d entries in so many lines", h.Chain.Entries)
		}
	})
}
