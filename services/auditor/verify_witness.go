package auditor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/witness"
)

// askWithin bounds how long one witness is asked.
const askWithin = 5 * time.Second

// judgeWitnesses compares the checkpoint with what others have seen of the log: the
// cosignatures that it carries and, where asked for, the witnesses themselves.
func (v *verifier) judgeWitnesses(ctx context.Context, checkpoint []byte) {
	p := v.options.Witnesses
	if p == nil || v.head() == 0 {
		return
	}
	v.witnessedAt, v.unwitnessed = p.Judge(checkpoint, v.options.Now())
	if !v.options.AskWitnesses {
		return
	}
	for _, w := range p.Witnesses {
		if w.URL != "" {
			v.askWitness(ctx, w, checkpoint)
		}
	}
}

// askWitness shows the head to a witness as the one that it should know.
func (v *verifier) askWitness(ctx context.Context, w witness.Witness, checkpoint []byte) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := (&witness.Client{Witness: w}).Add(ctx, v.head(), nil, checkpoint)
	var stale *witness.Stale
	switch {
	case err == nil:
	case !errors.As(err, &stale):
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("witness %s said nothing about the head: %v", w.Name, err))
	case stale.Size > v.head() && v.endedBy == events.EpochRestored:
		v.completeness.Add(fmt.Sprintf("lost range: witness %s has cosigned a head of %d leaves, but the site was restored from a backup of %d; what lay between is lost", w.Name, stale.Size, v.head()))
	case stale.Size > v.head():
		v.integrity.Add(fmt.Sprintf("rollback: witness %s has cosigned a head of %d leaves, the checkpoint covers %d", w.Name, stale.Size, v.head()))
	case stale.Size == v.head():
		v.integrity.Add(fmt.Sprintf("fork: witness %s has cosigned another head of %d leaves", w.Name, stale.Size))
	default:
		v.askGrowth(ctx, w, stale.Size, checkpoint)
	}
}

// askGrowth shows a witness that is behind how the log grew since. A log that did not
// grow out of what the witness knows cannot.
func (v *verifier) askGrowth(ctx context.Context, w witness.Witness, old int64, checkpoint []byte) {
	if old < 1 {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("witness %s has cosigned no head yet", w.Name))
		return
	}
	proof, err := growthOf(v.options.LogDir, old, v.head())
	if err == nil {
		_, err = (&witness.Client{Witness: w}).Add(ctx, old, proof, checkpoint)
	}
	var refused *witness.Refused
	if errors.As(err, &refused) && refused.Status == 422 {
		v.integrity.Add(fmt.Sprintf("fork: the log did not grow out of the head of %d leaves that witness %s has cosigned", old, w.Name))
	} else if err != nil {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("witness %s said nothing about the head: %v", w.Name, err))
	}
}

// growthOf proves how a log on disk grew.
func growthOf(dir string, old, size int64) (tlog.TreeProof, error) {
	r, err := tlog.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.ProveGrowth(old, size)
}

// readCheckpoint reads the checkpoint file, nil if it cannot be read: the log's own
// check says why.
func (v *verifier) readCheckpoint() []byte {
	b, err := os.ReadFile(filepath.Join(v.options.LogDir, "checkpoint"))
	if err != nil {
		return nil
	}
	return b
}

// backwards is how far the stream's clock may be set back unsaid. More than that looks
// like an event that was stored when it says it was not.
const backwards = 10 * time.Minute

// clock checks that time runs forward along the log.
func (v *verifier) clock(leaf int64, seq uint64, at time.Time) {
	if at.Before(v.newest.Add(-backwards)) {
		v.completeness.Add(fmt.Sprintf("time_backwards at sequence %d (leaf %d): stored at %s, after one of %s", seq, leaf, at.Format(time.RFC3339), v.newest.Format(time.RFC3339)))
		v.firstBad(leaf)
	}
	if at.After(v.newest) {
		v.newest = at
	}
}
