package texts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/trust"
)

// What stands in the place of a text that cannot be shown.
const (
	Erased   = "(erased)"
	Withheld = "(withheld)"
	Altered  = "(altered)"
)

// Store keeps texts; *bus.Conn is the one.
type Store interface {
	PutText(ctx context.Context, digest string, kept []byte) error
}

// Keep stores a text and returns the reference that stands for it in an event. There is
// nothing to keep of an empty one.
func Keep(ctx context.Context, s Store, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	var nonce [events.TextNonceBytes]byte
	rand.Read(nonce[:])
	ref, kept := events.KeepText(nonce, text)
	if err := s.PutText(ctx, ref.Digest, kept); err != nil {
		return "", fmt.Errorf("keep the text beside the stream: %w", err)
	}
	return ref.String(), nil
}

// Once keeps a text when it is called for the first time, for a draft that may be made
// several times, or never.
func Once(ctx context.Context, s Store, text string) func() (string, error) {
	ref := ""
	return func() (_ string, err error) {
		if ref == "" {
			ref, err = Keep(ctx, s, text)
		}
		return ref, err
	}
}

// NotKept stands in an event where there was no room for the words.
const NotKept = "(the words were not kept: their store is full)"

// Try is Once for what has to be said also where the store is full: a no, a
// cancellation and a revocation do not wait for room.
func Try(ctx context.Context, s Store, text string) func() (string, error) {
	keep := Once(ctx, s, text)
	return func() (string, error) {
		ref, err := keep()
		if errors.Is(err, bus.ErrFull) {
			return NotKept, nil
		}
		return ref, err
	}
}

// Bus is the part of the bus that is read; *bus.Conn is the one.
type Bus interface {
	Texts(ctx context.Context, digests []string) (map[string][]byte, error)
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
}

// Standing is what is in force; *standing.Standing is the one.
type Standing interface {
	Refresh(ctx context.Context) error
	Book() *trust.Book
}

// Reader puts texts back.
type Reader struct {
	Bus      Bus
	Standing Standing
}

// refAt finds the reference at the end of words, as in "cancelled by p7k2: [text ...]".
func refAt(words string) (before string, t events.Text, ok bool) {
	if !events.LooksLikeText(words) {
		return "", t, false
	}
	i := strings.LastIndex(words, "[")
	t, ok = events.ParseText(words[i:])
	return words[:i], t, ok
}

// Fill replaces every place that ends in a reference. All texts are asked for at once.
func (r Reader) Fill(ctx context.Context, places ...*string) error {
	var digests []string
	for _, p := range places {
		if _, t, ok := refAt(*p); ok {
			digests = append(digests, t.Digest)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	found, err := r.Bus.Texts(ctx, digests)
	if err != nil {
		return err
	}
	for _, p := range places {
		before, t, ok := refAt(*p)
		if !ok {
			continue
		}
		kept, there := found[t.Digest]
		words, err := r.words(ctx, t, kept, there)
		if err != nil {
			return err
		}
		*p = before + words
	}
	return nil
}

// words is what is shown of a text.
func (r Reader) words(ctx context.Context, t events.Text, kept []byte, there bool) (string, error) {
	if there {
		words, err := t.Open(kept)
		if err != nil {
			return Altered, nil
		}
		return words, nil
	}
	erased, err := r.Erased(ctx, t.Digest)
	if err != nil {
		return "", err
	}
	if erased {
		return Erased, nil
	}
	return Withheld, nil
}

// Erased says whether a believable order to erase a text is stored.
func (r Reader) Erased(ctx context.Context, digest string) (bool, error) {
	st, found, err := r.Bus.Last(ctx, events.For("text.erased", events.SiteScope, digest, "*").String())
	if err != nil || !found {
		return false, err
	}
	if err := r.Standing.Refresh(ctx); err != nil {
		return false, err
	}
	e, err := r.Standing.Book().Open(st)
	_, ok := e.Payload.(*events.TextErased)
	return err == nil && ok, nil
}
