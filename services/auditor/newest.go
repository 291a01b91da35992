package auditor

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
)

// Tail is the part of the bus that shows the end of the stream.
type Tail interface {
	LastSeq(ctx context.Context) (uint64, error)
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
}

// NewestOf lets [Verify] judge freshness by a connection to the bus.
func NewestOf(stream Tail) Newest { return newest{stream} }

type newest struct{ stream Tail }

// tailPage is how many events one step back from the end reads.
const tailPage = 128

// LastNonAuditSeq walks back from the end of the stream. Audit events come a few at a
// time, so this is one step as a rule.
func (n newest) LastNonAuditSeq(ctx context.Context) (uint64, error) {
	end, err := n.stream.LastSeq(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the end of the stream: %w", err)
	}
	for end > 0 {
		from := max(1, int64(end)-tailPage+1)
		found := uint64(0)
		for next := uint64(from); next <= end; {
			page, err := n.stream.Read(ctx, next, everything, tailPage)
			if err != nil {
				return 0, fmt.Errorf("read the end of the stream: %w", err)
			}
			if len(page) == 0 {
				break
			}
			for _, st := range page {
				if !isAudit(st.Subject) && st.Seq <= end {
					found = st.Seq
				}
				next = st.Seq + 1
			}
		}
		if found > 0 {
			return found, nil
		}
		end = uint64(from) - 1
	}
	return 0, nil
}
