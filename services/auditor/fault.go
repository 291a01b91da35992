package auditor

import (
	"fmt"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/query"
)

// Codes of integrity faults. Each of them closes dispatch until an admin has
// acknowledged it. After the first group the auditor goes on, because everything that
// it has read is in its log; after the second it seals nothing more.
const (
	faultStream = "broken_stream" // the stream has lost events that were read before
	faultWeak   = "weak_stream"   // the stream has a setting under which events may be lost

	faultRollback  = "rollback"       // the stream, or the log, went back in time
	faultFork      = "fork"           // the stream holds other events than the sealed ones
	faultRecreated = "recreated"      // the stream was deleted and made anew
	faultLog       = "damaged_log"    // the log is not what was signed
	faultHead      = "lost_head"      // the bucket holds no head of a log that has one
	faultKey       = "checkpoint_key" // the trust file in force does not list the checkpoint key
)

// Fault is an integrity fault after which the auditor seals nothing more and heals
// nothing.
type Fault struct {
	Code   string
	Detail string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("integrity fault %s: %s; dispatch is closed, keep everything as it is and run 'banksman audit verify'", f.Code, f.Detail)
}

func fault(code, format string, args ...any) *Fault {
	return &Fault{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// openFault is a fault that the log states and nobody has acknowledged.
type openFault struct {
	events.FaultName
	detail string
	from   uint64 // first of the sequences that were lost
}

// same says whether two state the same, one of them perhaps without having been stored.
func (o openFault) same(p openFault) bool { return o.Code == p.Code && o.detail == p.detail }

// without is list without what was stated, in memory of its own: others read the list.
func without(list, stated []openFault) (out []openFault) {
	for _, t := range list {
		if !slices.ContainsFunc(stated, t.same) {
			out = append(out, t)
		}
	}
	return out
}

func (o openFault) String() string {
	if o.Code == codeGap {
		return fmt.Sprintf("the stream did not hold sequences %d to %d any more when they were read", o.Seq, o.To)
	}
	return o.detail
}

const (
	nextAck     = "an admin who has looked into it reopens with 'banksman audit ack --reason TEXT'"
	nextSetBack = "set it back as the administrator of CORE with 'nats stream edit'; afterwards an admin acknowledges it"
)

// nextOf says what to do about a fault after which the auditor stands still.
func nextOf(code string) string {
	switch code {
	case faultKey:
		return "publish a trust file that lists the checkpoint key, then restart the auditor"
	case faultHead:
		return "find out who emptied the bus's store; if the bus was made anew on purpose, run 'banksman audit relock', restart the auditor, and acknowledge it with 'banksman audit ack --reason TEXT'"
	case faultLog:
		return "keep everything as it is and run 'banksman audit verify'; the log can be made again from the stream with 'banksman audit rebuild'"
	}
	return "no word of an admin makes this stream the audited one again: keep everything as it is, run 'banksman audit verify', and restore a backup"
}

// faults are what holds dispatch closed, for those who ask.
func faults(s status, f *Fault) []query.Fault {
	var out []query.Fault
	if f != nil {
		out = append(out, query.Fault{Code: f.Code, Detail: f.Detail, Next: nextOf(f.Code)})
	}
	for _, o := range s.faults() {
		v := query.Fault{Code: o.Code, Seq: o.Seq, To: o.To, Detail: o.String(), Acknowledgeable: f == nil, Next: nextAck}
		switch {
		case o.Seq == 0:
			v.Acknowledgeable, v.Next = false, "it is about to be said on the stream; ask again"
		case o.Code == faultWeak && s.weak != "":
			v.Acknowledgeable, v.Next = false, nextSetBack
		case o.from == 1: // the first trust file, without which nobody can believe anybody
			v.Acknowledgeable, v.Next = false, nextOf(o.Code)
		}
		out = append(out, v)
	}
	return out
}
