package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/tlog"
)

// Texts are the words of people that are kept beside the stream; *bus.Conn is the one.
type Texts interface {
	Texts(ctx context.Context, digests []string) (map[string][]byte, error)
}

// textFile is the name of a file that holds a kept text, nonce included.
func textFile(digest string) string { return digest + ".text" }

// digestOf reads the name of such a file.
func digestOf(name string) (digest string, ok bool) {
	digest, ok = strings.CutSuffix(name, ".text")
	return digest, ok && isHexDigest(digest)
}

func isHexDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// erasedBy is the digest of the text that an event of this subject orders to be erased.
func erasedBy(subject string) (digest string, ok bool) {
	t := strings.Split(subject, ".")
	return t[min(3, len(t)-1)], len(t) == 6 && t[0] == events.PrefixStored && t[1] == "text" && t[4] == "erased" && isHexDigest(t[3])
}

// namedBy lists the texts that a record's payload names, whoever signed it.
func namedBy(r tlog.Record) []events.Text {
	s, err := events.ParseSubject(r.Subject)
	if err != nil {
		return nil
	}
	d, known := events.Find(s.Kind(), 1)
	if !known {
		return nil
	}
	payload, err := events.Decode(d, r.Payload)
	if err != nil {
		return nil
	}
	return events.TextsOf(payload)
}

// texts writes what is kept of the words that the job's events name, and the orders by
// which others were erased.
func (w *writer) texts() error {
	var digests []string
	for _, leaf := range w.place.Leaves {
		rec, err := w.log.Record(leaf)
		if err != nil {
			return err
		}
		for _, t := range namedBy(rec) {
			digests = append(digests, t.Digest)
		}
	}
	slices.Sort(digests)
	digests = slices.Compact(digests)
	var kept map[string][]byte
	if w.kept != nil && len(digests) > 0 {
		var err error
		if kept, err = w.kept.Texts(w.ctx, digests); err != nil {
			return err
		}
	}
	for _, d := range digests {
		text, there := kept[d]
		leaf, erased := w.place.Erased[d]
		switch {
		case there:
			w.made.Texts++
			if err := w.file(textFile(d), text); err != nil {
				return err
			}
		case erased:
			w.made.Erased++
			if err := w.leaf(leaf); err != nil {
				return err
			}
		default:
			w.made.Withheld++
		}
	}
	return nil
}

// named is a text that an event of the job names.
type named struct {
	leaf int64
	text events.Text
}

// erasure checks an order to erase a text, which is no event of the job.
func (v *verifier) erasure(n int64, digest string, err error) {
	if err == nil {
		v.erased[digest] = n
	}
	v.orders[digest] = n
}

// judgeTexts compares the texts that the job's events name with those of the bundle.
func (v *verifier) judgeTexts() {
	for _, d := range slices.Sorted(maps.Keys(v.named)) {
		n := v.named[d]
		kept, err := v.file(textFile(d), maxFile_bytes)
		if err == nil {
			_, err = n.text.Open(kept)
		}
		_, erased := v.erased[d]
		switch {
		case err == nil:
			v.report.Texts++
		case !errors.Is(err, fs.ErrNotExist):
			v.integrity.Add(fmt.Sprintf("leaf %d: %v", n.leaf, err))
			v.firstBad(n.leaf)
		case erased:
			v.report.Erased = append(v.report.Erased, n.leaf)
		default:
			v.report.WithheldTexts = append(v.report.WithheldTexts, n.leaf)
			v.completeness.Add(fmt.Sprintf("withheld: the text that leaf %d names is not here, and no order to erase it is", n.leaf))
		}
	}
	for _, d := range slices.Sorted(maps.Keys(v.files)) {
		if _, ok := v.named[d]; !ok {
			v.integrity.Add(fmt.Sprintf("%q: no event of the job names such a text", textFile(d)))
		}
	}
	for _, d := range slices.Sorted(maps.Keys(v.orders)) {
		if _, ok := v.named[d]; !ok {
			v.integrity.Add(fmt.Sprintf("leaf %d orders a text to be erased that no event of the job names", v.orders[d]))
			v.firstBad(v.orders[d])
		}
	}
}
