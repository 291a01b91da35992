package events

import (
	"crypto/sha256"
	"encoding/hex"
)

var alertKinds = []Def{
	define[AlertRaised]("alert.raised", 1, "the monitor had found something wrong that no open alert named, and a new episode had begun"),
	define[AlertUpdated]("alert.updated", 1, "an open alert had become more or less severe, or plainly worse"),
	define[AlertCleared]("alert.cleared", 1, "what the alert named was no longer so, and the episode had ended"),
	define[AlertAcknowledged]("alert.acknowledged", 1, "a person had said that they know of the open alert"),
}

// Severities of an alert, the worse one last.
const (
	SeverityWarning  = "warning"  // somebody should look
	SeverityCritical = "critical" // going on does harm
)

// maxDetectorBytes bounds the name of a detector, so that the id of its alert
// about any project is an id.
const maxDetectorBytes = 24

// AlertID is the id of what a detector says about something. It is the same
// in every episode and for every monitor, so that none is raised twice: the
// first event about an episode names the last one of the episode before.
func AlertID(detector, about string) string {
	if CheckName("about", about) == nil && len(detector) <= maxDetectorBytes {
		return detector + "-" + about
	}
	sum := sha256.Sum256([]byte(about))
	return detector[:min(len(detector), maxDetectorBytes)] + "-" + hex.EncodeToString(sum[:8])
}

// AlertRaised begins an episode. The scope is the project that it is about, or
// "site".
type AlertRaised struct {
	// Detector is the name of what found it.
	Detector string `json:"detector"`
	// About is what is wrong: a project, or a host and a folder.
	About string `json:"about"`
	// Severity is "warning" or "critical".
	Severity string `json:"severity"`
	// Grade says how bad it is by the detector's own measure; only a larger
	// one is worth an update.
	Grade int64 `json:"grade"`
	// Summary is the sentence for people.
	Summary string `json:"summary"`
	// Host is the machine that it is about; empty for a project.
	Host string `json:"host,omitempty"`

	Extra Extra `json:",embed"`
}

// AlertUpdated says what the alert has become.
type AlertUpdated struct {
	// Raised is the sequence of the episode's first event.
	Raised uint64 `json:"raised"`
	// Severity is "warning" or "critical".
	Severity string `json:"severity"`
	// Grade says how bad it is by the detector's own measure.
	Grade int64 `json:"grade"`
	// Summary is the sentence for people.
	Summary string `json:"summary"`

	Extra Extra `json:",embed"`
}

// AlertCleared ends an episode.
type AlertCleared struct {
	// Raised is the sequence of the episode's first event.
	Raised uint64 `json:"raised"`
	// Reason says why it is over.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// AlertAcknowledged says that a person has taken notice. The alert stays open.
type AlertAcknowledged struct {
	// Raised is the sequence of the episode's first event.
	Raised uint64 `json:"raised"`
	// Reason is the person's own words.
	Reason string `json:"reason,omitempty"`

	Extra Extra `json:",embed"`
}
