package proposer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
)

// bodyLimit is the largest request in bytes: a text in JSON may take six bytes
// for one.
func bodyLimit(c *Config) int64 { return 6*int64(c.MaxBytes) + 4096 }

// bounded lets a request in by quota.
func (d *door) bounded(do answer) answer {
	return func(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
		leave, err := d.quota.enter(r.Context(), from)
		if err != nil {
			return err
		}
		defer leave()
		return do(w, r, from)
	}
}

// noted records refusals. What is no refusal of the proposal itself, such as a
// bus that is away, is not one.
func (d *door) noted(do answer) answer {
	return func(w http.ResponseWriter, r *http.Request, from events.Proposer) error {
		body := &digesting{ReadCloser: r.Body, sum: sha256.New()}
		r.Body = body
		err := do(w, r, from)
		var e *agentapi.Error
		if errors.As(err, &e) && e.Status < http.StatusInternalServerError {
			d.ledger.add(events.ProposalRefused{Proposer: from, Code: e.Code, Digest: body.digest(), Content: e.Content, Where: e.Where})
		}
		return err
	}
}

// digesting takes the digest of a body while it is read.
type digesting struct {
	io.ReadCloser
	sum   hash.Hash
	ended bool
}

func (b *digesting) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.sum.Write(p[:n])
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// digest is that of the whole body, empty when it was not read to its end.
func (b *digesting) digest() string {
	if !b.ended {
		return ""
	}
	return hex.EncodeToString(b.sum.Sum(nil))
}
