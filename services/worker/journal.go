package worker

import (
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/logbook"
)

// record is what the disk knows of an attempt. It is written before the claim
// is published, so that no attempt of this worker can be forgotten, and removed
// after the end is stored. The sequence of the claim is not in it: the job's
// history tells it by session and number.
type record struct {
	Job     string `json:"job"`
	Pool    string `json:"pool"`
	Attempt int    `json:"attempt"`
	Session string `json:"session"`
	// Marker finds the attempt's processes; see proc.SweepMarker.
	Marker string `json:"marker"`
	// Finished or Cancelled is the end that waits to be stored.
	Finished  *events.JobFinished  `json:"finished,omitempty"`
	Cancelled *events.JobCancelled `json:"cancelled,omitempty"`
}

// Name tells attempts apart, those of one job too.
func (r record) Name() string { return fmt.Sprintf("%s.%d.%s", r.Job, r.Attempt, r.Session) }

// ended says whether the record holds an end.
func (r record) ended() bool { return r.Finished != nil || r.Cancelled != nil }

const (
	recordSuffix = ".attempt.json"
	spoolSuffix  = ".output"
)

// journal is the folder of attempts.
type journal struct{ logbook.Book[record] }

func openJournal(dir string) (journal, error) {
	book, err := logbook.Open[record](dir, recordSuffix)
	return journal{book}, err
}

// spool is where the attempt's output waits for the bus.
func (j journal) spool(r record) string { return j.Beside(r.Name(), spoolSuffix) }
