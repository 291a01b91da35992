package proposer

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
)

var (
	claude = events.Proposer{Kind: "agent", ID: "claude"}
	other  = events.Proposer{Kind: "agent", ID: "other"}
)

// quotaOf is a quota with a clock that stands still until it is moved.
func quotaOf(change func(*Config)) (q *quota, now *time.Time, open map[events.Proposer]int) {
	c := DefaultConfig()
	change(&c)
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	open = map[events.Proposer]int{}
	q = newQuota(&c, func(context.Context) (map[events.Proposer]int, error) {
		out := map[events.Proposer]int{}
		for p, n := range open {
			out[p] = n
		}
		return out, nil
	})
	q.now = func() time.Time { return at }
	return q, &at, open
}

func refusedAs(err error) (code string, after int) {
	var e *agentapi.Error
	if errors.As(err, &e) {
		return e.Code, e.RetryAfterS
	}
	return "", 0
}

func TestRateIsOfEachTokenAndOfAll(t *testing.T) {
	q, now, _ := quotaOf(func(c *Config) { c.RatePerMinute, c.RateBurst, c.TotalPerMinute, c.TotalBurst = 60, 2, 60, 5 })
	enter := func(p events.Proposer) error {
		leave, err := q.enter(t.Context(), p)
		if err == nil {
			leave()
		}
		return err
	}
	for range 2 {
		if err := enter(claude); err != nil {
			t.Fatal(err)
		}
	}
	if code, after := refusedAs(enter(claude)); code != codeRate || after != 1 {
		t.Errorf("%q, try again in %d s", code, after)
	}
	if err := enter(other); err != nil {
		t.Errorf("another token pays for it: %v", err)
	}
	*now = now.Add(time.Second)
	if err := enter(claude); err != nil {
		t.Errorf("a second later: %v", err)
	}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		_ = enter(events.Proposer{Kind: "agent", ID: id})
	}
	if code, _ := refusedAs(enter(events.Proposer{Kind: "agent", ID: "f"})); code != codeRate {
		t.Errorf("all together have no bound: %q", code)
	}
}

func TestOpenProposalsAreCountedAnew(t *testing.T) {
	q, now, open := quotaOf(func(c *Config) { c.OpenPerToken, c.OpenTotal = 2, 3 })
	open[claude] = 1
	if err := q.room(t.Context(), claude); err != nil {
		t.Fatal(err)
	}
	q.stored(claude)
	open[claude] = 2
	*now = now.Add(recountEvery)
	if code, after := refusedAs(q.room(t.Context(), claude)); code != codeOpen || after != openAgainS {
		t.Errorf("%q, try again in %d s", code, after)
	}
	if err := q.room(t.Context(), other); err != nil {
		t.Errorf("another token has room: %v", err)
	}
	q.stored(other)
	open[other] = 1
	*now = now.Add(recountEvery)
	if code, _ := refusedAs(q.room(t.Context(), events.Proposer{Kind: "agent", ID: "third"})); code != codeOpen {
		t.Errorf("all together have no bound: %q", code)
	}
	open[claude] = 0 // people have decided
	*now = now.Add(recountEvery)
	if err := q.room(t.Context(), claude); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}

// What is missing less than a nanosecond of a token is missing.
func TestBucketCountsTheLastNanosecond(t *testing.T) {
	now := time.Unix(1, 0)
	b := bucket{left: 1 - 1e-15, at: now}
	if wait := b.take(now, 600, 1); wait <= 0 || b.left >= 1 {
		t.Errorf("wait %d, left %v", wait, b.left)
	}
}

// However requests come, a bucket never gives more than its burst and its rate.
func TestBucketNeverGivesMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute, burst := rapid.IntRange(1, 600).Draw(t, "rate"), rapid.IntRange(1, 50).Draw(t, "burst")
		start := time.Unix(0, 0)
		b, now, taken := bucket{}, start, 0
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "wait_ms")) * time.Millisecond)
			wait := b.take(now, perMinute, burst)
			if wait == 0 {
				taken++
			} else if wait < 0 || wait > time.Minute {
				t.Fatalf("wait %s", wait)
			}
		}
		if most := float64(burst) + now.Sub(start).Minutes()*float64(perMinute); float64(taken) > most+1e-6 {
			t.Fatalf("%d taken, at most %f", taken, most)
		}
	})
}
