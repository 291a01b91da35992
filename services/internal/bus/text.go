package bus

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// PutText keeps a text under the actor's own name. The same one may be kept again.
func (c *Conn) PutText(ctx context.Context, digest string, kept []byte) error {
	subject := events.PrefixText + "." + digest + "." + c.cfg.Actor
	r, err := c.ask(ctx, "keep text "+digest, &nats.Msg{Subject: subject, Data: kept})
	if err != nil {
		return err
	}
	var ack pubAck
	if err := json.Unmarshal(r.Data, &ack); err != nil {
		return fmt.Errorf("read the acknowledgement of text %s: %w", digest, err)
	}
	if ack.Error == nil {
		return nil
	}
	refusal := ack.Error.refusal(subject)
	if ack.Error.Code != codeStoreFailed || errors.Is(refusal, ErrFull) {
		return refusal
	}
	if there, found, err := c.Text(ctx, digest); err == nil && found && events.Digest(there) == digest {
		return nil
	}
	return refusal
}

// Text reads what is kept under a digest.
func (c *Conn) Text(ctx context.Context, digest string) (kept []byte, found bool, err error) {
	all, err := c.Texts(ctx, []string{digest})
	kept, found = all[digest]
	return kept, found, err
}

// textsAtOnce is how many texts one request asks for.
const textsAtOnce = 128

// Texts reads what is kept under some digests. Where several actors have stored
// something there, it is the one that has the digest, if any has.
func (c *Conn) Texts(ctx context.Context, digests []string) (map[string][]byte, error) {
	out := map[string][]byte{}
	take := func(page []events.Stored) {
		for _, st := range page {
			t := strings.Split(st.Subject, ".")
			if len(t) != 3 {
				continue
			}
			if _, there := out[t[1]]; !there || events.Digest(st.Data) == t[1] {
				out[t[1]] = st.Data
			}
		}
	}
	for some := range slices.Chunk(digests, textsAtOnce) {
		var filters []string
		for _, d := range some {
			filters = append(filters, events.PrefixText+"."+d+".*")
		}
		page, _, err := c.whole(ctx, grants.TextStream, getRequest{Lasts: filters})
		if err != nil {
			return nil, fmt.Errorf("read kept texts: %w", err)
		}
		take(page)
	}
	for _, d := range digests { // one answer has a bound, so what is missing is asked for alone
		if _, there := out[d]; !there {
			page, err := c.textsOf(ctx, d)
			if err != nil {
				return nil, err
			}
			take(page)
		}
	}
	return out, nil
}

func (c *Conn) textsOf(ctx context.Context, digest string) ([]events.Stored, error) {
	filter := events.PrefixText + "." + digest + ".*"
	page, err := c.page(ctx, grants.TextStream, getRequest{Seq: 1, Next: filter, Batch: pageMessages, MaxBytes: pageBytes})
	if err != nil {
		return nil, fmt.Errorf("read text %s: %w", digest, err)
	}
	return page, nil
}

// EachText hands over everything that is kept, with the digest that it is stored under.
func (c *Conn) EachText(ctx context.Context, handle func(digest string, kept []byte) error) error {
	for next := uint64(1); ; {
		page, err := c.readFrom(ctx, grants.TextStream, next, events.PrefixText+".>", pageMessages)
		if err != nil {
			return fmt.Errorf("read the kept texts: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, st := range page {
			next = st.Seq + 1
			if t := strings.Split(st.Subject, "."); len(t) == 3 {
				if err := handle(t[1], st.Data); err != nil {
					return err
				}
			}
		}
	}
}

// deleteAnswer is what the server says to a deletion.
type deleteAnswer struct {
	Success bool      `json:"success"`
	Error   *apiError `json:"error"`
}

// EraseText deletes everything that is kept under a digest. The server overwrites a
// message before it forgets it. It returns how many there were.
func (c *Conn) EraseText(ctx context.Context, digest string) (erased int, err error) {
	all, err := c.textsOf(ctx, digest)
	if err != nil {
		return 0, err
	}
	for _, st := range all {
		m := &nats.Msg{Subject: c.api + "STREAM.MSG.DELETE." + grants.TextStream, Data: fmt.Appendf(nil, `{"seq":%d}`, st.Seq)}
		r, err := c.ask(ctx, "erase text "+digest, m)
		if err != nil {
			return erased, err
		}
		var a deleteAnswer
		if err := json.Unmarshal(r.Data, &a); err != nil {
			return erased, fmt.Errorf("erase text %s: read the answer: %w", digest, err)
		}
		if a.Error != nil {
			return erased, fmt.Errorf("erase text %s: %w", digest, a.Error.refusal(m.Subject))
		}
		erased++
	}
	return erased, nil
}
