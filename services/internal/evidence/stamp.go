package evidence

import (
	"fmt"
	"time"

	"github.com/banksman/banksman/services/internal/tsa"
)

// Stamped is what a time-stamping authority says about the head.
type Stamped struct {
	Time time.Time `json:"time"` // the head existed at this time
	TSA  string    `json:"tsa"`  // the name in the authority's certificate
	// Vouched says whether the certificate leads to the roots that were given.
	Vouched bool `json:"vouched"`
}

// judgeStamp checks the stamp of the head, if there is one.
func (v *verifier) judgeStamp() {
	if !v.stamped {
		return
	}
	answer, err := v.file(stampFile, 1<<20)
	if err != nil {
		v.integrity.Add(err.Error())
		return
	}
	s, err := tsa.Parse(answer)
	if err == nil {
		err = s.Stamps(v.head.Note)
	}
	if err == nil && v.options.TSARoots != nil {
		err = s.Trusted(v.options.TSARoots)
	}
	if err != nil {
		v.integrity.Add(fmt.Sprintf("%s: %v", stampFile, err))
		return
	}
	v.report.Stamp = &Stamped{Time: s.Time, TSA: s.TSA, Vouched: v.options.TSARoots != nil}
}
