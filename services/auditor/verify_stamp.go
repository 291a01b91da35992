package auditor

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"time"

	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/tsa"
)

// StampedHead is a head of the log that a time-stamping authority has stamped.
type StampedHead struct {
	Origin string    `json:"origin"` // of the log
	Size   int64     `json:"size"`
	Root   string    `json:"root"`
	Time   time.Time `json:"time"` // the head existed at this time
	TSA    string    `json:"tsa"`  // the name in the authority's certificate
	// Vouched says whether the certificate leads to the roots that were given.
	Vouched bool `json:"vouched"`
}

// judgeStamps checks that each stamped head is a signed head of this log, and that its
// stamp is whole.
func (v *verifier) judgeStamps() error {
	held, err := tsa.Shelf(filepath.Clean(v.options.LogDir) + site.StampsSuffix).List()
	if err != nil || len(held) == 0 {
		return err
	}
	if v.log.Has(tlog.HashesMismatch) || v.log.Has(tlog.FileMissing) {
		v.report.Notes = append(v.report.Notes, "stamped heads were not compared, because the stored hashes are not those of the entries")
		return nil
	}
	for _, h := range held {
		if h.Answer == nil {
			v.report.Notes = append(v.report.Notes, fmt.Sprintf("the stamp of the head of %d entries was asked for and has not come", h.Size))
			continue
		}
		if err := v.judgeStamp(h); err != nil {
			v.integrity.Add(fmt.Sprintf("the stamp of the head of %d entries: %v", h.Size, err))
		}
	}
	if v.options.TSARoots == nil && len(v.report.Stamps) > 0 {
		v.report.Notes = append(v.report.Notes, "nobody vouches for who made the stamps; name the authority's certificate with --tsa-ca")
	}
	return nil
}

func (v *verifier) judgeStamp(h tsa.Held) error {
	origin, cp, err := tlog.OpenCheckpoint(h.Checkpoint, v.signersAt(min(h.Size, v.head())))
	switch {
	case err != nil:
		return err
	case origin != v.log.Origin || cp.Size != h.Size:
		return fmt.Errorf("it is about %d entries of %q", cp.Size, origin)
	case cp.Size > v.head():
		return fmt.Errorf("rollback: the checkpoint covers %d", v.head())
	}
	if root, err := rootAt(v.options.LogDir, cp.Size); err != nil {
		return err
	} else if root != cp.Root {
		return fmt.Errorf("fork: the log has another root of so many entries")
	}
	s, err := tsa.Parse(h.Answer)
	if err == nil {
		err = s.Stamps(h.Checkpoint)
	}
	if err == nil && v.options.TSARoots != nil {
		err = s.Trusted(v.options.TSARoots)
	}
	if err != nil {
		return err
	}
	v.report.Stamps = append(v.report.Stamps, StampedHead{
		Origin: origin, Size: cp.Size, Root: base64.StdEncoding.EncodeToString(cp.Root[:]), Time: s.Time, TSA: s.TSA, Vouched: v.options.TSARoots != nil,
	})
	return nil
}
