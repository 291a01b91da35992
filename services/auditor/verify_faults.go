package auditor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/banksman/banksman/events"
)

// acknowledgement is a believable gap.acknowledged.
type acknowledgement struct {
	seq   uint64
	actor string
	*events.GapAcknowledged
}

// acknowledged is the event that names a fault, 0 for none. Nobody knows a fault before
// it was found, so only what stands behind it counts.
func (v *verifier) acknowledged(name events.FaultName, since uint64) uint64 {
	for _, w := range v.words {
		if w.seq > since && slices.Contains(w.Faults, name) {
			return w.seq
		}
	}
	return 0
}

// judgeFaults weighs gaps and stated faults against the words of admins.
func (v *verifier) judgeFaults() {
	for _, g := range v.gaps {
		g.Acknowledged = v.acknowledged(events.FaultName{Code: events.FaultGap, Seq: g.From, To: g.To}, g.To)
		if g.Acknowledged == 0 {
			v.completeness.Add(fmt.Sprintf("the stream had lost sequences %d to %d, and no admin has acknowledged that", g.From, g.To))
		}
		v.report.Gaps = append(v.report.Gaps, g)
	}
	for i := range v.report.Faults {
		f := &v.report.Faults[i]
		f.Acknowledged = v.acknowledged(events.FaultName{Code: f.Code, Seq: f.Seq}, f.Seq)
		if f.Acknowledged == 0 {
			v.completeness.Add(fmt.Sprintf("sequence %d states the fault %s, and no admin has acknowledged it: %s", f.Seq, f.Code, f.Detail))
		}
	}
}

// complete is what a reader of an ok should know.
func (v *verifier) complete() string {
	var parts, words []string
	if n := len(v.report.Gaps); n > 0 {
		parts = append(parts, fmt.Sprintf("%d acknowledged gap(s), %d sequence(s)", n, v.missing))
	}
	if n := len(v.report.Faults); n > 0 {
		parts = append(parts, fmt.Sprintf("%d acknowledged fault(s)", n))
	}
	if len(parts) == 0 {
		return "no sequence and no number of a session is missing"
	}
	for _, w := range v.words {
		words = append(words, fmt.Sprintf("%s at sequence %d: %s", w.actor, w.seq, w.Reason))
	}
	return "intact with " + strings.Join(parts, " and ") + "; " + strings.Join(words, "; ")
}

// inGap says whether a sequence is one of those that the stream had lost.
func (v *verifier) inGap(seq uint64) bool {
	return slices.ContainsFunc(v.gaps, func(g Gap) bool { return g.From <= seq && seq <= g.To })
}

// counter is how far a session has come.
type counter struct {
	n       uint64
	missing uint64 // sequences that were in gaps by then
}

// session checks that the counter of a session has no hole. A hole that is no larger
// than the gaps since the session's last event is theirs, and judged with them.
func (v *verifier) session(seq uint64, id events.ID) {
	key := id.Actor + "/" + id.Session
	last := v.sessions[key]
	b := followsInSession(last.n, id)
	if b != nil && !(b.code == codeSessionHole && id.N-last.n-1 <= v.missing-last.missing) {
		v.completeness.Add(fmt.Sprintf("%s at sequence %d: %s", b.code, seq, b.detail))
	}
	v.sessions[key] = counter{max(last.n, id.N), v.missing}
}
