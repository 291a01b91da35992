package supervisor

import (
	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/logbook"
)

// record is what the disk knows of a round that is not over. It is written
// before the round's start is published and removed after its end and its
// leftovers are.
type record struct {
	Project string `json:"project"`
	Round   string `json:"round"`
	// Marker finds the round's processes; see proc.SweepMarker.
	Marker string `json:"marker"`
	// Ended is the end that waits to be stored.
	Ended *events.RoundEnded `json:"ended,omitempty"`
	// Looked says that leftovers were seen to; Salvaged or Failed is what
	// came of it, neither when there was nothing to keep.
	Looked   bool                      `json:"looked,omitzero"`
	Salvaged *events.WorkSalvaged      `json:"salvaged,omitempty"`
	Failed   *events.WorkSalvageFailed `json:"failed,omitempty"`
}

// Name is the round's id.
func (r record) Name() string { return r.Round }

const (
	recordSuffix = ".round.json"
	logSuffix    = ".log"
)

// journal is the folder of a project's rounds and their logs.
type journal struct{ logbook.Book[record] }

func openJournal(dir string) (journal, error) {
	book, err := logbook.Open[record](dir, recordSuffix)
	return journal{book}, err
}

func (j journal) log(round string) string { return j.Beside(round, logSuffix) }
