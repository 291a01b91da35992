package query

import "time"

// Alerts is the subject of the question about alerts, answered by the monitor.
const Alerts = "bmq.alerts.list" // AlertsRequest -> AlertList

// AlertsRequest asks for open alerts, the worst first.
type AlertsRequest struct {
	All     bool   `json:"all,omitzero"` // cleared ones too, as far as the monitor remembers them
	Project string `json:"project,omitempty"`
}

// AlertList is the answer.
type AlertList struct {
	Alerts []AlertView `json:"alerts"`
}

// AlertView is one alert and its newest episode.
type AlertView struct {
	Alert     string    `json:"alert"`
	Detector  string    `json:"detector"`
	About     string    `json:"about"`
	Project   string    `json:"project,omitempty"`
	Severity  string    `json:"severity"`
	State     string    `json:"state"` // raised, acknowledged or cleared
	Summary   string    `json:"summary"`
	Raised    uint64    `json:"raised"` // sequence of the episode's first event
	RaisedAt  time.Time `json:"raised_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Episodes  int       `json:"episodes"`
	AckBy     string    `json:"acknowledged_by,omitempty"`
	ClearedAt time.Time `json:"cleared_at,omitzero"`
	Reason    string    `json:"reason,omitempty"` // why it was cleared
}
