package auditor

import (
	"fmt"

	"github.com/banksman/banksman/events"
)

// Codes of violations that no single event shows.
const (
	// codeSessionHole: the counter of a session leaves some out. An event of the
	// actor was lost or held back before it reached the stream.
	codeSessionHole = "session_hole"
	// codeIDReused: the counter of a session repeats. An event was stored twice.
	codeIDReused = "id_reused"
	// codeWrongPosition: a job's event was signed for another place in its history.
	codeWrongPosition = "wrong_position"
	// codeWrongEpoch: an event opens an epoch that does not follow, or names a head
	// that the log before never had.
	codeWrongEpoch = "wrong_epoch"
)

// breach is a broken rule.
type breach struct {
	code   string
	detail string
}

// followsInSession says what is wrong with an id after the last counter of its
// session, 0 for none.
func followsInSession(last uint64, id events.ID) *breach {
	switch {
	case id.N == last+1:
		return nil
	case id.N <= last:
		return &breach{codeIDReused, fmt.Sprintf("%s came after number %d of its session", id, last)}
	}
	return &breach{codeSessionHole, fmt.Sprintf("%s follows number %d: %d event(s) of %s are missing", id, last, id.N-last-1, id.Actor)}
}
