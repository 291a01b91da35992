package texts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/texts"
)

// full is a store without room.
type full struct{ asked int }

func (f *full) PutText(context.Context, string, []byte) error {
	f.asked++
	return fmt.Errorf("keep: %w", bus.ErrFull)
}

func TestNoIsSaidWithoutRoom(t *testing.T) {
	f := &full{}
	if ref, err := texts.Try(t.Context(), f, "no")(); err != nil || ref != texts.NotKept || f.asked != 1 {
		t.Errorf("%q, %v", ref, err)
	}
	if _, err := texts.Once(t.Context(), f, "a remark")(); !errors.Is(err, bus.ErrFull) {
		t.Error(err)
	}
	if ref, err := texts.Keep(t.Context(), f, ""); ref != "" || err != nil || f.asked != 2 {
		t.Errorf("nothing is kept as %q, %v", ref, err)
	}
}

// TestWordsArePutBack: at the end of a place and nowhere else, each as it is kept, and
// the same text never leads to the same reference.
func TestWordsArePutBack(t *testing.T) {
	s := stage.New(t, stage.Options{})
	c, ctx := s.Conn(stage.Person), t.Context()
	keep := texts.Once(ctx, c, "as it is")
	ref, err := keep()
	stage.Must(t, err)
	if again, err := keep(); err != nil || again != ref {
		t.Errorf("kept twice: %q, %v", again, err)
	}
	other, err := texts.Keep(ctx, c, "as it is")
	stage.Must(t, err)
	if _, ok := events.ParseText(ref); !ok || ref == other {
		t.Errorf("%q and %q", ref, other)
	}
	withheld, _ := events.KeepText([events.TextNonceBytes]byte{}, "never kept")
	altered, _ := events.KeepText([events.TextNonceBytes]byte{1}, "other words")
	stage.Must(t, c.PutText(ctx, altered.Digest, []byte("in their place")))
	places := map[string]string{
		ref: "as it is", "denied by p: " + ref: "denied by p: as it is", ref + " and more": ref + " and more", "plain": "plain", "": "",
		withheld.String(): texts.Withheld, altered.String(): texts.Altered, strings.ToUpper(ref): strings.ToUpper(ref),
	}
	r := texts.Reader{Bus: s.Conn("reader"), Standing: s.Standing("reader")}
	for was, want := range places {
		got := was
		if err := r.Fill(ctx, &got); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", was, got, err, want)
		}
	}
}
