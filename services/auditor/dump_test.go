package auditor

import (
	"encoding/json/v2"
	"fmt"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/index"
)

// dumpIndex renders everything that an index holds.
func dumpIndex(t testing.TB, path string) string {
	t.Helper()
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var b strings.Builder
	p, err := x.Position()
	fmt.Fprintf(&b, "%+v %v %q\n", p, err, x.Anew())
	jobs, more, err := x.List(index.Query{Limit: 1 << 20})
	for _, j := range jobs {
		text, err := json.Marshal(j, json.Deterministic(true))
		fmt.Fprintf(&b, "%s %v\n", text, err)
	}
	counts, countErr := x.Counts()
	fmt.Fprintf(&b, "%v %v %v %v\n", more, err, counts, countErr)
	err = x.Facts("", func(k string, v []byte) error {
		fmt.Fprintf(&b, "%s=%q\n", k, v)
		return nil
	})
	fmt.Fprintf(&b, "%v\n", err)
	return b.String()
}

// trust is the trust file that the site began with.
func (s *testSite) trust() events.TrustPublished {
	s.t.Helper()
	st, _, err := s.conn("reader").Last(s.t.Context(), events.Filter("trust", events.TrustID))
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := events.Open(s.plan.Origin, st)
	if err != nil {
		s.t.Fatal(err)
	}
	return *e.Payload.(*events.TrustPublished)
}
