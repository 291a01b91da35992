package index

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnknown: no job has this id, or one that begins like it.
	ErrUnknown = errors.New("no such job")
	// ErrDamaged: the file does not hold what was written; Reset and feed again.
	ErrDamaged = errors.New("the job index is damaged")
	// ErrOrder: the batch leads back.
	ErrOrder = errors.New("the index is past this position")
)

// ErrAmbiguous is a prefix that several jobs begin with.
type ErrAmbiguous struct {
	Prefix     string
	Candidates []string // the first few, in order
	More       bool     // there are others
}

func (e *ErrAmbiguous) Error() string {
	more := ""
	if e.More {
		more = ", and others"
	}
	return fmt.Sprintf("%q begins several job ids: %s%s; give more of it", e.Prefix, strings.Join(e.Candidates, ", "), more)
}

// damaged says where the damage showed.
func damaged(what string, cause any) error {
	return fmt.Errorf("%w: %s: %v", ErrDamaged, what, cause)
}
