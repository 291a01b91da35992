package bus

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Headers of an output chunk.
const (
	headerOutput = "bm-stream" // stdout or stderr
	headerAt     = "bm-at-ms"  // milliseconds since the attempt began
)

// outputPageBytes bounds what a reader of output holds at once.
const outputPageBytes = 1 << 20

// OutputSubject is where chunk n of an attempt is stored.
func OutputSubject(pool, job string, attempt, n int, worker string) string {
	return fmt.Sprintf("%s.%s.%s.%d.%d.%s", events.PrefixOutput, pool, job, attempt, n, worker)
}

// PutOutput stores one chunk. It may be called again with the same chunk; the
// first one stays. A different chunk under the same subject is refused.
func (c *Conn) PutOutput(ctx context.Context, subject string, stream string, atMS int64, data []byte) error {
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		headerOutput: {stream}, headerAt: {strconv.FormatInt(atMS, 10)},
	}}
	r, err := c.ask(ctx, "store output "+subject, m)
	if err != nil {
		return err
	}
	var ack pubAck
	if err := json.Unmarshal(r.Data, &ack); err != nil {
		return fmt.Errorf("read the acknowledgement of %s: %w", subject, err)
	}
	if ack.Error == nil {
		return nil
	}
	refusal := ack.Error.refusal(subject)
	if ack.Error.Code != codeStoreFailed || errors.Is(refusal, ErrFull) {
		return refusal
	}
	// There is a chunk already; is it this one?
	get := c.api + "DIRECT.GET." + grants.OutputStream + "." + subject
	r, err = c.ask(ctx, "read output "+subject, &nats.Msg{Subject: get})
	if err != nil {
		return err
	}
	st, end, err := readAnswer(get, r, false)
	if err == nil && !end && bytes.Equal(st.Data, data) {
		return nil
	}
	return refusal
}

// ReadOutput hands over the stored chunks of an attempt in order, from chunk
// number from on. Call it again with the next number for what came since.
func (c *Conn) ReadOutput(ctx context.Context, pool, job string, attempt int, from int,
	handle func(n int, stream string, atMS int64, data []byte) error,
) error {
	filter := fmt.Sprintf("%s.%s.%s.%d.*.*", events.PrefixOutput, pool, job, attempt)
	next, err := c.behind(ctx, pool, job, attempt, from-1)
	if err != nil {
		return err
	}
	for {
		req := getRequest{Seq: next, Next: filter, Batch: pageMessages, MaxBytes: outputPageBytes}
		page, err := c.page(ctx, grants.OutputStream, req)
		if err != nil {
			return fmt.Errorf("read the output of job %s: %w", job, err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, st := range page {
			next = st.Seq + 1
			n, stream, atMS, err := readChunk(st)
			if err != nil {
				return err
			}
			if n < from {
				continue
			}
			if err := handle(n, stream, atMS, st.Data); err != nil {
				return err
			}
		}
	}
}

// behind is the sequence behind a chunk that was read before, so that whoever
// follows does not read everything again; 1 when there is none.
func (c *Conn) behind(ctx context.Context, pool, job string, attempt, n int) (uint64, error) {
	if n < 1 {
		return 1, nil
	}
	chunk := fmt.Sprintf("%s.%s.%s.%d.%d.*", events.PrefixOutput, pool, job, attempt, n)
	page, err := c.page(ctx, grants.OutputStream, getRequest{Seq: 1, Next: chunk, Batch: 1})
	if err != nil {
		return 0, fmt.Errorf("read the output of job %s: %w", job, err)
	}
	if len(page) == 0 {
		return 1, nil
	}
	return page[0].Seq + 1, nil
}

func readChunk(st events.Stored) (n int, stream string, atMS int64, err error) {
	t := strings.Split(st.Subject, ".")
	if len(t) != 6 {
		return 0, "", 0, fmt.Errorf("read output chunk %q: want bmo.<pool>.<job>.<attempt>.<n>.<worker>", st.Subject)
	}
	n, err = strconv.Atoi(t[4])
	if err != nil {
		return 0, "", 0, fmt.Errorf("read output chunk %q: number: %w", st.Subject, err)
	}
	atMS, err = strconv.ParseInt(last(st.Header, headerAt), 10, 64)
	if err != nil {
		return 0, "", 0, fmt.Errorf("read output chunk %q: %s: %w", st.Subject, headerAt, err)
	}
	return n, last(st.Header, headerOutput), atMS, nil
}
