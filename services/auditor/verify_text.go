package auditor

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/banksman/banksman/events"
)

// Texts are the words of people that are kept beside the stream; *bus.Conn is the one.
type Texts interface {
	EachText(ctx context.Context, handle func(digest string, kept []byte) error) error
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
}

// textKey is a text's digest.
type textKey [32]byte

func keyOfText(digest string) (k textKey) {
	hex.Decode(k[:], []byte(digest))
	return k
}

// namedText is where a text is named first.
type namedText struct {
	leaf  int64
	bytes int
}

// textCheck is what believable events say about texts.
type textCheck struct {
	named  map[textKey]namedText
	erased map[textKey]bool
}

// erase notes that a text was to be erased.
func (c *textCheck) erase(k textKey) {
	if c.named == nil {
		c.named, c.erased = map[textKey]namedText{}, map[textKey]bool{}
	}
	c.erased[k] = true
}

// see notes which texts an event names or orders to be erased.
func (c *textCheck) see(leaf int64, e events.Event) {
	if c.named == nil {
		c.named, c.erased = map[textKey]namedText{}, map[textKey]bool{}
	}
	if _, ok := e.Payload.(*events.TextErased); ok {
		c.erase(keyOfText(e.Subject.ID))
	}
	for _, t := range events.TextsOf(e.Payload) {
		if _, known := c.named[keyOfText(t.Digest)]; !known {
			c.named[keyOfText(t.Digest)] = namedText{leaf, t.Bytes}
		}
	}
}

// judgeTexts compares the texts that events name with those that are kept.
func (v *verifier) judgeTexts(ctx context.Context) error {
	if len(v.texts.named) == 0 {
		return nil
	}
	if v.options.Texts == nil {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("%d text(s) of people are kept on the bus and were not looked at", len(v.texts.named)))
		return nil
	}
	kept, altered := map[textKey]bool{}, map[textKey]bool{}
	err := v.options.Texts.EachText(ctx, func(digest string, text []byte) error {
		k := keyOfText(digest)
		if n, ok := v.texts.named[k]; ok {
			_, err := (events.Text{Digest: digest, Bytes: n.bytes}).Open(text)
			if err == nil {
				kept[k] = true
			} else {
				altered[k] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, n := range v.texts.named {
		if kept[k] {
			v.report.Texts++
			continue
		}
		if altered[k] {
			v.integrity.Add(fmt.Sprintf("the text that leaf %d names is kept with other bytes than its digest says", n.leaf))
			v.firstBad(n.leaf)
			continue
		}
		if err := v.judgeMissing(ctx, k, n); err != nil {
			return err
		}
	}
	return nil
}

// judgeMissing tells a text that was erased from one that is withheld. The order to
// erase it may be younger than the log as it was read.
func (v *verifier) judgeMissing(ctx context.Context, k textKey, n namedText) error {
	erased := v.texts.erased[k]
	if !erased {
		st, found, err := v.options.Texts.Last(ctx, events.For("text.erased", events.SiteScope, hex.EncodeToString(k[:]), "*").String())
		if err != nil {
			return err
		}
		if found && st.Seq > v.report.ThroughSeq {
			_, err := v.book.Open(st)
			erased = err == nil
		}
	}
	if erased {
		v.report.Erased++
		return nil
	}
	v.completeness.Add(fmt.Sprintf("withheld: the text that leaf %d names is not kept, and no order to erase it is in the log", n.leaf))
	return nil
}
