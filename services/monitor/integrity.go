package monitor

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
)

// maxFaults bounds what is remembered of faults.
const maxFaults = 1000

// integrity watches for what the auditor finds wrong with the stream and the log. Each
// finding closes dispatch until an admin acknowledges it.
type integrity struct {
	Open map[string]string // by name of the fault: the sentence for people
}

func (*integrity) Name() string { return nameIntegrity }

func (*integrity) Calm() string { return "an admin has acknowledged what was wrong" }

func keyOf(f events.FaultName) string { return fmt.Sprintf("%016x %s %016x", f.Seq, f.Code, f.To) }

func (d *integrity) Observe(e events.Event) {
	switch p := e.Payload.(type) {
	case *events.AuditGapFound:
		d.note(events.FaultName{Code: events.FaultGap, Seq: p.From, To: p.To}, fmt.Sprintf("events %d to %d are missing from the stream", p.From, p.To))
	case *events.AuditFaultFound:
		d.note(events.FaultName{Code: p.Code, Seq: e.Seq}, p.Code+": "+p.Detail)
	case *events.GapAcknowledged:
		for _, f := range p.Faults {
			delete(d.Open, keyOf(f))
		}
	}
}

func (d *integrity) note(f events.FaultName, text string) {
	if len(d.Open) < maxFaults {
		d.Open[keyOf(f)] = text
	}
}

func (d *integrity) Findings(time.Time) []Finding {
	if len(d.Open) == 0 {
		return nil
	}
	first := d.Open[slices.Sorted(maps.Keys(d.Open))[0]]
	return []Finding{{
		About: "stream", Severity: events.SeverityCritical, Grade: int64(len(d.Open)),
		Summary: fmt.Sprintf("no job starts, %d fault(s), the first is %s; see 'banksman audit status'", len(d.Open), first),
	}}
}
