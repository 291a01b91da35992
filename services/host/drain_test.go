package host

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestDrainIsAskedOfAWorkerAlone(t *testing.T) {
	for _, c := range []struct {
		roles        []string
		method, path string
		code         int
		drains       bool
	}{
		{[]string{"proposer", "worker"}, http.MethodPost, "/drain/worker", http.StatusAccepted, true},
		{[]string{"proposer", "worker"}, http.MethodGet, "/drain/worker", http.StatusMethodNotAllowed, false},
		{[]string{"proposer", "worker"}, http.MethodPost, "/drain/proposer", http.StatusNotFound, false},
		{[]string{"proposer"}, http.MethodPost, "/drain/worker", http.StatusNotFound, false},
	} {
		b := newBoard(c.roles, nil)
		for range 2 { // a second request changes nothing
			w := httptest.NewRecorder()
			if !askedToDrain(w, httptest.NewRequest(c.method, c.path, nil), b) || w.Code != c.code || b.draining() != c.drains {
				t.Errorf("%s %s: status %d, draining %v", c.method, c.path, w.Code, b.draining())
			}
		}
	}
	b := newBoard([]string{"worker"}, nil)
	if askedToDrain(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), b) {
		t.Error("a question for the status is taken for a request to drain")
	}
	if Drained(b.status()) {
		t.Error("a worker that starts counts as drained")
	}
	b.set("worker", false, drainedReason)
	if !Drained(b.status()) || !Drained(Status{}) {
		t.Error("a drained worker, or none, does not count as drained")
	}
}
