package auditor

import (
	"encoding/base64"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/tlog"
)

// pastHead is a head that an audit.sealed event has published.
type pastHead struct {
	leaf   int64 // of the event
	origin string
	size   int64
	root   string
}

// judgePast compares every head that was published before, on the stream or by an
// anchor, with the tree. The auditor's own word of yesterday binds it today.
func (v *verifier) judgePast(r *tlog.Report) {
	if len(v.past) == 0 && v.options.Anchor == nil {
		return
	}
	if r.Has(tlog.HashesMismatch) || r.Has(tlog.FileMissing) {
		if v.options.Anchor != nil {
			v.integrity.Add("the stored hashes are not those of the entries, so the anchor cannot be compared; start the auditor, which makes them again")
		}
		v.report.Notes = append(v.report.Notes, "past heads were not compared, because the stored hashes are not those of the entries")
		return
	}
	// They were recomputed from the entries just now, and are the same.
	log, err := tlog.OpenReader(v.options.LogDir)
	if err != nil {
		v.integrity.Add(fmt.Sprintf("past heads cannot be compared: %v", err))
		return
	}
	defer log.Close()
	for _, p := range v.past {
		if p.origin != "" && p.origin != r.Origin {
			continue // it was on its way when the epoch ended; judgeEpoch looks at it
		}
		if p.size > p.leaf {
			v.integrity.Add(fmt.Sprintf("leaf %d publishes a head of %d leaves, more than lie before it", p.leaf, p.size))
			v.firstBad(p.leaf)
			continue
		}
		root, err := log.TreeHash(p.size)
		if err != nil {
			v.integrity.Add(fmt.Sprintf("the root of %d leaves cannot be read: %v", p.size, err))
		} else if base64.StdEncoding.EncodeToString(root[:]) != p.root {
			v.integrity.Add(fmt.Sprintf("fork: leaf %d publishes another root of %d leaves than the log has", p.leaf, p.size))
			v.firstBad(p.leaf)
		}
	}
	v.judgeAnchor(log)
}

// fileAt is a trust file and the leaf from which on it is in force.
type fileAt struct {
	leaf int64
	file *events.TrustPublished
}

// signersAt are the keys that may sign a head of so many leaves.
func (v *verifier) signersAt(size int64) note.Verifiers {
	var keys []note.Verifier
	for _, at := range slices.Backward(v.files) {
		if at.leaf >= size {
			continue
		}
		for _, text := range at.file.CheckpointKeys {
			if key, err := note.NewVerifier(text); err == nil {
				keys = append(keys, key)
			}
		}
		break
	}
	return note.VerifierList(keys...)
}

// judgeAnchor checks that the log grew out of a head that somebody kept.
func (v *verifier) judgeAnchor(log *tlog.Reader) {
	if v.options.Anchor == nil {
		return
	}
	_, anchor, err := tlog.ParseCheckpoint(v.options.Anchor)
	if err == nil {
		// A key that was retired since still vouches for the heads of its time.
		_, _, err = tlog.OpenCheckpoint(v.options.Anchor, v.signersAt(min(anchor.Size, v.head())))
	}
	switch {
	case err != nil:
		v.integrity.Add(fmt.Sprintf("the anchor is not signed by a key of the trust file in force at its size: %v", err))
		return
	case anchor.Size > v.head() && v.endedBy == events.EpochRestored:
		v.completeness.Add(fmt.Sprintf("lost range: the anchor covers %d leaves, but the site was restored from a backup of %d; what lay between is lost", anchor.Size, v.head()))
		return
	case anchor.Size > v.head():
		v.integrity.Add(fmt.Sprintf("rollback: the anchor covers %d leaves, the checkpoint %d", anchor.Size, v.head()))
		return
	}
	if root, err := log.TreeHash(anchor.Size); err != nil {
		v.integrity.Add(fmt.Sprintf("the root of %d leaves cannot be read: %v", anchor.Size, err))
	} else if root != anchor.Root {
		v.integrity.Add(fmt.Sprintf("fork: the anchor has another root of %d leaves than the log", anchor.Size))
	}
}
