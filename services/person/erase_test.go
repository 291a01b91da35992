package person

import (
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/texts"
)

// TestWhoMayErase: an admin, what is kept, with a reason; whoever else changes nothing.
func TestWhoMayErase(t *testing.T) {
	s := newStage(t)
	ref, err := texts.Keep(s.Context(), s.Conn(stage.Person), "a name")
	stage.Must(t, err)
	digest := strings.Fields(strings.TrimPrefix(ref, "[text sha256:"))[0]
	for _, c := range []struct{ who, digest, reason, want string }{
		{stage.Second, digest, "not mine", CodeNoRight},
		{stage.Person, digest, " ", CodeNoReason},
		{stage.Person, strings.Repeat("0", 64), "there is none", CodeNoText},
		{stage.Person, "bm.>", "no digest", CodeNoText},
		{stage.Person, digest, "asked for", ""},
		{stage.Person, digest, "asked for again", ""},
	} {
		before := s.Last("bm.text.>")
		err := desk(s, c.who).Erase(s.Context(), c.digest, c.reason, "")
		if codeOf(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%s erases %.12s: %v", c.who, c.digest, err)
		}
		if said := s.Last("bm.text.>") != before; said != (c.reason == "asked for") {
			t.Errorf("%s, %q: something was said: %v", c.who, c.reason, said)
		}
	}
}
