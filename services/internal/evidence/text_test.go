package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

// TestWordsInABundle: words that are there, that were erased by order, that are withheld
// and that are others than the event names are told apart, by both verifiers.
func TestWordsInABundle(t *testing.T) {
	needShell(t)
	text := func(y *yard, dir string) string {
		found, err := filepath.Glob(filepath.Join(dir, "*.text"))
		if err != nil || len(found) != 1 {
			y.t.Fatalf("%q, %v", found, err)
		}
		return found[0]
	}
	order := func(y *yard, dir string) []string {
		return []string{path(dir, 5, "entry"), path(dir, 5, "headers"), path(dir, 5, "payload"), path(dir, 5, "tlog-proof")}
	}
	for _, m := range []struct {
		mutation
		erased, withheld int
		says             string
	}{
		{mutation{"nothing", func(*yard, string) {}, ""}, 1, 0, "erased by order: the words of leaves 3"},
		{mutation{"the words are withheld", func(y *yard, dir string) { remove(y.t, text(y, dir)) }, "c"}, 1, 1, "withheld"},
		{mutation{"other words", func(y *yard, dir string) {
			edit(y.t, text(y, dir), func(b []byte) []byte { return append(b[:len(b)-4], "lies"...) })
		}, "i"}, 1, 0, ".text"},
		{mutation{"the order is left out", func(y *yard, dir string) { remove(y.t, order(y, dir)...) }, "c"}, 0, 1, "withheld"},
		{mutation{"the order's payload is withheld", func(y *yard, dir string) { remove(y.t, path(dir, 5, "payload")) }, ""}, 1, 0, "withheld"},
		{mutation{"words of nobody", func(y *yard, dir string) {
			if err := os.WriteFile(filepath.Join(dir, strings.Repeat("0", 64)+".text"), []byte("x"), 0o644); err != nil {
				y.t.Fatal(err)
			}
		}, "i"}, 1, 0, "no event"},
	} {
		t.Run(m.name, func(t *testing.T) {
			y := told(t)
			dir := y.export("job-a")
			m.change(y, dir)
			r := y.verify(dir)
			if letters(r) != m.want || len(r.Erased) != m.erased || len(r.WithheldTexts) != m.withheld {
				t.Errorf("%+v", r)
			}
			if ok, said := y.shell(dir); ok != (m.want == "") || !strings.Contains(said, m.says) {
				t.Errorf("the shell says %s", said)
			}
		})
	}
}

// TestAnOrderNeedsTheRight: whoever is no admin erases nothing, and the words are then
// withheld.
func TestAnOrderNeedsTheRight(t *testing.T) {
	needShell(t)
	y := newYard(t)
	ref := y.keep("words that somebody wants gone")
	y.proposeFor("job-a", ref)
	kept, _ := events.ParseText(ref)
	delete(y.texts, kept.Digest)
	y.say("gate", "text.erased", events.SiteScope, kept.Digest, events.TextErased{Reason: "a test"})
	dir := y.export("job-a")
	if r := y.verify(dir); letters(r) != "ac" || len(r.Erased) != 0 || len(r.WithheldTexts) != 1 {
		t.Errorf("%+v", r)
	}
	if ok, said := y.shell(dir); ok {
		t.Errorf("the shell says %s", said)
	}
}
