package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/services/internal/grants"
)

// The output stream refuses what is new when it is full, because only so does it
// refuse a second chunk under one subject as well. So room is made beforehand: from
// trimAbove on, the oldest goes until trimTo is reached, in eighths of max_bytes.
const (
	trimAbove = 7
	trimTo    = 6
)

// TrimOutput drops the oldest output where little room is left, and returns how
// many chunks. Digests stay in the events. Only the bus's own role may.
func (c *Conn) TrimOutput(ctx context.Context) (dropped uint64, err error) {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return 0, fmt.Errorf("make room for output: %w", err)
	}
	st, err := js.Stream(ctx, grants.OutputStream)
	if err != nil {
		return 0, fmt.Errorf("make room for output: %w", err)
	}
	info := st.CachedInfo()
	eighth, state := uint64(max(info.Config.MaxBytes, 0))/8, info.State
	if eighth == 0 || state.Bytes <= trimAbove*eighth || state.Msgs == 0 {
		return 0, nil
	}
	// Chunks differ in size: what the average frees too little of is left to the
	// next call.
	mean := max(state.Bytes/state.Msgs, 1)
	n := min((state.Bytes-trimTo*eighth)/mean+1, state.Msgs)
	if err := st.Purge(ctx, jetstream.WithPurgeSequence(state.FirstSeq+n)); err != nil {
		return 0, fmt.Errorf("make room for output: drop the oldest %d chunks: %w", n, err)
	}
	return n, nil
}
