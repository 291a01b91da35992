package proposer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/query"
)

func TestRoom(t *testing.T) {
	asked, now := 0, time.Unix(0, 0)
	answer, fails := query.AuditStatus{}, errors.New("away")
	r := &room{now: func() time.Time { return now }, ask: func(context.Context) (query.AuditStatus, error) { asked++; return answer, fails }}
	takes := func(what string, full bool, questions int) {
		t.Helper()
		err := r.check(t.Context())
		if (err != nil) != full || asked != questions {
			t.Errorf("%s: %v after %d questions, want full %v after %d", what, err, asked, full, questions)
		}
		if full && !strings.Contains(err.Error(), "80 %") {
			t.Error(err)
		}
	}
	takes("an auditor that never answered", false, 1)
	answer, fails = query.AuditStatus{Bytes: 800, MaxBytes: 1000}, nil
	takes("the answer is young", false, 1)
	now = now.Add(roomEvery)
	takes("80 %", true, 2)
	takes("80 %, again", true, 2)
	fails = errors.New("away")
	now = now.Add(roomEvery)
	takes("its last word counts", true, 3)
	answer, fails = query.AuditStatus{Bytes: 799, MaxBytes: 1000}, nil
	now = now.Add(roomEvery)
	takes("room again", false, 4)
	answer = query.AuditStatus{Bytes: 1 << 40}
	now = now.Add(roomEvery)
	takes("a stream without a bound", false, 5)
}
