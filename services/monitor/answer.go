package monitor

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/alert"
	"github.com/banksman/banksman/services/internal/alerts"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
)

// serviceName is the monitor's name among the services of the bus.
const serviceName = "banksman-monitor"

// list answers which alerts there are, as of the last event read.
func (w *watch) list(_ context.Context, request []byte) (any, error) {
	var q query.AlertsRequest
	if len(request) > 0 {
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, &bus.RemoteError{Code: "bad_request", Message: "the question cannot be read: " + err.Error()}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := query.AlertList{Alerts: []query.AlertView{}}
	for _, a := range w.memory.Alerts {
		if a.Status == alert.None || !a.Open() && !q.All || q.Project != "" && a.Scope != q.Project {
			continue
		}
		out.Alerts = append(out.Alerts, alerts.View(a))
	}
	slices.SortFunc(out.Alerts, func(a, b query.AlertView) int {
		return cmp.Or(weight(b)-weight(a), b.RaisedAt.Compare(a.RaisedAt), cmp.Compare(a.Alert, b.Alert))
	})
	return out, nil
}

// weight puts open alerts before cleared ones, and critical ones first.
func weight(v query.AlertView) int {
	switch {
	case v.State == string(alert.Cleared):
		return 0
	case v.Severity == events.SeverityCritical:
		return 2
	}
	return 1
}
