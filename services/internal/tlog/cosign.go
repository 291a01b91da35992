package tlog

import (
	"bytes"
	"fmt"
)

// Cosign adds the signature lines of others to the checkpoint file, if the head that
// they are about is still the newest; it says whether it was. The caller has checked
// the lines. They are not in what [Log.Head] returns, and Open leaves them alone.
func (l *Log) Cosign(head Checkpoint, lines string) (added bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false, l.err
	}
	if head.Size != l.head.Size || !bytes.Equal(head.Note, l.head.Note) {
		return false, nil
	}
	b := append(bytes.Clone(l.head.Note), lines...)
	if _, _, err := ParseCheckpoint(b); err != nil {
		return false, fmt.Errorf("add cosignatures to the head of %d leaves: %w", head.Size, err)
	}
	return true, l.fail(l.d.replace(l.path(checkpointName), b))
}
