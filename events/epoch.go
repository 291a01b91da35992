package events

import (
	"fmt"
	"strconv"
	"strings"
)

// The family "epoch" keeps a site finite. Its events' id is the epoch's name,
// "epoch-2". Sequences, jobs, signatures and trust files go on from one epoch to the
// next; what begins anew is the audit log, and the bus lets go of what is not carried.
var epochKinds = []Def{
	define[EpochOpened]("epoch.opened", 1, "the auditor had found the epoch before full, or was asked to close it, and had listed what is still in force"),
	define[EpochCloseRequested]("epoch.close_requested", 1, "an admin had asked the auditor to close the epoch that the subject names"),
}

// FirstEpoch is the epoch of a new site. Nothing opens it.
const FirstEpoch = 1

// EpochID is the name of an epoch, and the id part of the subjects of its events.
func EpochID(n int) string { return "epoch-" + strconv.Itoa(n) }

// ParseEpoch is the inverse of EpochID.
func ParseEpoch(id string) (n int, ok bool) {
	text, ok := strings.CutPrefix(id, "epoch-")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= FirstEpoch && EpochID(n) == id
}

// Reasons to open an epoch.
const (
	EpochFullJobs  = "jobs"      // so many jobs had ended in the epoch before
	EpochFullBytes = "bytes"     // the stream had become so large
	EpochRequested = "requested" // an admin had asked for it
	EpochRestored  = "restored"  // the site was put back from a backup
)

// EpochOpened is the first event of an epoch. Everything stored before it belongs to
// the epochs before. The bus may let go of what was stored up to Through, except for
// what is carried.
type EpochOpened struct {
	// Epoch is the number of the epoch that begins.
	Epoch int `json:"epoch"`
	// Why is one of "jobs", "bytes", "requested", "restored".
	Why string `json:"why"`
	// Request is the sequence of the admin's request, for "requested".
	Request uint64 `json:"request,omitzero"`
	// Origin, Size and Root are a signed head of the log of the epoch before, in
	// the form of a checkpoint.
	Origin string `json:"origin"`
	// Size is the number of entries under that head.
	Size int64 `json:"size"`
	// Root is the head's RFC 6962 root in standard base64.
	Root string `json:"root"`
	// Through is the last sequence under that head. What came after it is carried.
	Through uint64 `json:"through"`
	// Carried lists, for each family of subjects that is not carried whole, the
	// ids that are.
	Carried map[string][]string `json:"carried"`

	Extra Extra `json:",embed"`
}

// Carries tells of the event that is stored at a sequence, under a subject, whether it
// goes along into the epoch. What has a form that nobody knows does.
func (p *EpochOpened) Carries() func(seq uint64, subject string) bool {
	ids := map[string]map[string]bool{}
	for family, list := range p.Carried {
		ids[family] = map[string]bool{}
		for _, id := range list {
			ids[family][id] = true
		}
	}
	return func(seq uint64, subject string) bool {
		s, err := ParseSubject(subject)
		if seq > p.Through || err != nil {
			return true
		}
		carried, listed := ids[s.Family]
		return !listed || carried[s.ID]
	}
}

// Follows says what is wrong with the opening of an epoch after another one, or nil.
func (p *EpochOpened) Follows(e Event, current int) error {
	switch {
	case p.Epoch != current+1 || e.Subject.ID != EpochID(p.Epoch):
		return fmt.Errorf("%s opens epoch %d, the one after %d is %d", e.Subject.ID, p.Epoch, current, current+1)
	case e.Expect != 0:
		return fmt.Errorf("it was signed to follow event %d, but nothing opens an epoch twice", e.Expect)
	case p.Through >= e.Seq:
		return fmt.Errorf("it names sequence %d as already sealed", p.Through)
	}
	return nil
}

// EpochCloseRequested asks for the end of the epoch that the subject names.
type EpochCloseRequested struct {
	// Reason is why, for people.
	Reason string `json:"reason,omitempty"`

	Extra Extra `json:",embed"`
}
