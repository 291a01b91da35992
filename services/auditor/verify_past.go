package auditor

import (
	"encoding/base64"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/tlog"
)

// pastHead is a head that an audit.sealed event has published.
type pastHead struct {
	leaf int64 // of the event
	size int64
	root string
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

// judgeAnchor checks that the log grew out of a head that somebody kept.
func (v *verifier) judgeAnchor(log *tlog.Reader) {
	if v.options.Anchor == nil {
		return
	}
	var signers []note.Verifier
	if v.sealedTrust != nil {
		for _, text := range v.sealedTrust.CheckpointKeys {
			if key, err := note.NewVerifier(text); err == nil {
				signers = append(signers, key)
			}
		}
	}
	_, anchor, err := tlog.OpenCheckpoint(v.options.Anchor, note.VerifierList(signers...))
	switch {
	case err != nil:
		v.integrity.Add(fmt.Sprintf("the anchor is not signed by a key of the trust file in force: %v", err))
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
