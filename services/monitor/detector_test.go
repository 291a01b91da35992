package monitor

import (
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/config"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// heard is an accepted event about project demo, some time after noon.
func heard(after time.Duration, payload any) events.Event {
	kinds := map[string]events.Kind{}
	for _, d := range events.Catalog() {
		kinds["*"+d.Type.String()] = d.Kind
	}
	kind := kinds[fmt.Sprintf("%T", payload)]
	return events.Event{Seq: uint64(after/time.Second) + 1, Time: noon.Add(after), Kind: kind, Version: 1, Payload: payload,
		Subject: events.For(kind, "demo", "demo", "supervisor")}
}

func ended(outcome, failure string, ms int64) *events.RoundEnded {
	return &events.RoundEnded{Outcome: outcome, Failure: failure, DurationMS: ms}
}

// each project-wide detector, told by outcomes of rounds in a row.
func TestStreaksOfRounds(t *testing.T) {
	auth := ended(outcomeFailed, failureAuth, 10)
	crash := ended(outcomeFailed, "", 10)
	slow := ended(outcomeFailed, "", 61_000)
	late := ended(outcomeTimedOut, "", 1_800_000)
	good := ended(outcomeSucceeded, "", 1000)
	cut := ended(outcomeInterrupted, "", 10)
	stopped := ended(outcomeStopped, "", 10)
	lift, start := &events.StopLifted{}, &events.LoopStartRequested{}
	ten := func(p any) []any { return slices.Repeat([]any{p}, 10) }
	for name, c := range map[string]struct {
		detector string
		told     []any
		want     int64 // grade, 0 for nothing found
	}{
		"two refusals":                      {nameAuth, []any{auth, auth}, 0},
		"three refusals":                    {nameAuth, []any{auth, auth, auth}, doublings(3)},
		"a refusal in a round that worked":  {nameAuth, []any{auth, auth, ended(outcomeSucceeded, failureAuth, 10)}, doublings(3)},
		"a good round in between":           {nameAuth, []any{auth, auth, good, auth}, 0},
		"another failure in between":        {nameAuth, []any{auth, auth, crash, auth}, 0},
		"an interrupted round says nothing": {nameAuth, []any{auth, auth, cut, stopped, auth}, doublings(3)},
		"a lift begins anew":                {nameAuth, []any{auth, auth, auth, lift}, 0},
		"a start begins anew":               {nameAuth, []any{auth, auth, auth, start, auth, auth}, 0},
		"ten refusals":                      {nameAuth, ten(auth), doublings(10)},

		"four crashes":                   {nameCrash, []any{crash, crash, crash, crash}, 0},
		"five crashes":                   {nameCrash, []any{crash, crash, crash, crash, crash}, doublings(5)},
		"refusals are no crashes":        {nameCrash, ten(auth), 0},
		"a refusal does not end a row":   {nameCrash, []any{crash, crash, auth, crash, crash, crash}, doublings(5)},
		"a slow failure is no crash":     {nameCrash, ten(slow), 0},
		"a slow failure ends a row":      {nameCrash, []any{crash, crash, crash, crash, slow, crash}, 0},
		"a timeout is no crash":          {nameCrash, ten(late), 0},
		"one timeout":                    {nameTimeouts, []any{late}, 0},
		"two timeouts":                   {nameTimeouts, []any{late, good, late}, 2},
		"timeouts long ago":              {nameTimeouts, append([]any{late, late}, ten(good)...), 0},
		"stopped rounds are not counted": {nameTimeouts, append([]any{late, late}, ten(stopped)...), 2},
		"all timed out":                  {nameTimeouts, append(ten(late), ten(late)...), 10},
	} {
		var d Detector
		for _, one := range detectors(DefaultConfig()) {
			if one.Name() == c.detector {
				d = one
			}
		}
		for i, p := range c.told {
			d.Observe(heard(time.Duration(i)*time.Second, p))
		}
		var grade int64
		for _, f := range d.Findings(noon.Add(time.Hour)) {
			grade += f.Grade
			if f.About != "demo" || f.Project != "demo" || f.Summary == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if grade != c.want {
			t.Errorf("%s: grade %d, want %d", name, grade, c.want)
		}
	}
}

func TestALoopThatFallsSilent(t *testing.T) {
	for name, c := range map[string]struct {
		told  []any
		after time.Duration
		want  int
	}{
		"rests":            {[]any{&events.LoopClaimed{}}, 59 * time.Minute, 0},
		"silent":           {[]any{&events.LoopClaimed{}}, 61 * time.Minute, 1},
		"nobody holds it":  {[]any{&events.LoopClaimed{}, &events.LoopReleased{}}, 24 * time.Hour, 0},
		"halted":           {[]any{&events.LoopClaimed{}, &events.LoopHalted{}}, 24 * time.Hour, 0},
		"halted, restart":  {[]any{&events.LoopClaimed{}, &events.LoopHalted{}, &events.LoopClaimed{}}, 24 * time.Hour, 0},
		"stopped":          {[]any{&events.LoopClaimed{}, &events.StopOrdered{}}, 24 * time.Hour, 0},
		"lifted":           {[]any{&events.LoopClaimed{}, &events.StopOrdered{}, &events.StopLifted{}}, 24 * time.Hour, 1},
		"halted, lifted":   {[]any{&events.LoopClaimed{}, &events.LoopHalted{}, &events.StopOrdered{}, &events.StopLifted{}}, 24 * time.Hour, 0},
		"long round":       {[]any{&events.LoopClaimed{}, &events.RoundStarted{TimeLimitS: 7200}}, 2 * time.Hour, 0},
		"hung round":       {[]any{&events.LoopClaimed{}, &events.RoundStarted{TimeLimitS: 7200}}, 3*time.Hour + time.Minute, 1},
		"short round":      {[]any{&events.LoopClaimed{}, &events.RoundStarted{TimeLimitS: 1}}, 100 * time.Second, 0},
		"hung short round": {[]any{&events.LoopClaimed{}, &events.RoundStarted{TimeLimitS: 1}}, 150 * time.Second, 1},
	} {
		d := &hung{Loops: map[string]*pulse{}, percent: 150, silent: time.Hour}
		for _, p := range c.told {
			d.Observe(heard(0, p))
		}
		if got := len(d.Findings(noon.Add(c.after))); got != c.want {
			t.Errorf("%s: %d findings, want %d", name, got, c.want)
		}
	}
}

func TestDisksHaveToWinRoomBack(t *testing.T) {
	d := &disks{Seen: map[string]disk{}, warning: 90, critical: 95}
	for i, step := range []struct {
		free int64
		want string
	}{{500, ""}, {101, ""}, {100, "warning"}, {105, "warning"}, {111, ""}, {50, "critical"}, {59, "critical"}, {61, "warning"}, {111, ""}, {-1, ""}, {2000, ""}} {
		d.Observe(heard(time.Duration(i)*time.Second, &events.HostObserved{Host: "h", Disks: []events.Disk{{Path: "/", TotalBytes: 1000, FreeBytes: step.free}}}))
		got := ""
		for _, f := range d.Findings(noon.Add(time.Minute)) {
			got = f.Severity
		}
		if got != step.want {
			t.Errorf("step %d, %d free: %q, want %q", i, step.free, got, step.want)
		}
	}
	for i := range maxDisks + 10 {
		d.Observe(heard(time.Hour+time.Duration(i)*time.Second, &events.HostObserved{Host: fmt.Sprint(i), Disks: []events.Disk{{Path: "/", TotalBytes: 1000, FreeBytes: 1}}}))
	}
	if _, first := d.Seen["h:/"]; len(d.Seen) != maxDisks || first {
		t.Errorf("%d disks are remembered", len(d.Seen))
	}
}

// anything is some event that a detector may be told.
func anything(t *rapid.T, i int) events.Event {
	outcome := rapid.SampledFrom([]string{outcomeSucceeded, outcomeFailed, outcomeTimedOut, outcomeStopped, outcomeInterrupted}).Draw(t, "outcome")
	failure := rapid.SampledFrom([]string{"", failureAuth}).Draw(t, "failure")
	free := rapid.Int64Range(0, 1000).Draw(t, "free")
	e := heard(time.Duration(i)*time.Minute, rapid.SampledFrom([]any{
		ended(outcome, failure, rapid.Int64Range(0, 100_000).Draw(t, "ms")),
		&events.RoundStarted{TimeLimitS: rapid.IntRange(0, 3600).Draw(t, "limit")},
		&events.LoopClaimed{}, &events.LoopReleased{}, &events.LoopHalted{}, &events.LoopStartRequested{},
		&events.StopOrdered{Mode: rapid.SampledFrom([]string{"drain", "kill"}).Draw(t, "mode"), Alert: rapid.SampledFrom([]string{"", "x"}).Draw(t, "alert")},
		&events.StopSeen{}, &events.StopDrained{}, &events.StopKilled{}, &events.StopConfirmed{}, &events.StopEscalated{}, &events.StopLifted{},
		&events.HostObserved{Host: "h", Disks: []events.Disk{{Path: "/", TotalBytes: 1000, FreeBytes: free}}},
	}).Draw(t, "event"))
	e.Subject.Scope = rapid.SampledFrom([]string{"demo", "other"}).Draw(t, "project")
	return e
}

// Putting the memory away and taking it up again changes nothing that is ever
// found, and every id that follows is one.
func TestAMemoryThatWasPutAwayIsTheSame(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "m.json")
		cfg := DefaultConfig()
		straight, broken := detectors(cfg), detectors(cfg)
		m := newMemory()
		for i := range rapid.IntRange(0, 60).Draw(t, "n") {
			e := anything(t, i)
			for _, list := range [][]Detector{straight, broken} {
				for _, d := range list {
					d.Observe(e)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				m.Seq = uint64(i)
				if err := save(path, "site", cfg, m, broken); err != nil {
					t.Fatal(err)
				}
				broken = detectors(cfg)
				var err error
				if m, err = load(path, "site", cfg, broken); err != nil || m.Seq != uint64(i) {
					t.Fatal(m, err)
				}
			}
			now := noon.Add(time.Duration(i)*time.Minute + time.Duration(rapid.IntRange(0, 500).Draw(t, "later"))*time.Minute)
			for k := range straight {
				one, two := sorted(straight[k].Findings(now)), sorted(broken[k].Findings(now))
				if !slices.Equal(one, two) {
					t.Fatalf("%s found %+v, after restarts %+v", straight[k].Name(), one, two)
				}
				for _, f := range one {
					if err := events.For("alert.raised", "site", events.AlertID(straight[k].Name(), f.About), "monitor").Valid(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

func sorted(list []Finding) []Finding {
	slices.SortFunc(list, func(a, b Finding) int { return slices.Compare([]byte(a.About), []byte(b.About)) })
	return list
}

func TestACheckpointOfAnotherSiteOrConfigurationIsOfNoUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "m.json")
	cfg := DefaultConfig()
	if _, err := load(path, "site", cfg, detectors(cfg)); !missing(err) {
		t.Errorf("without a file: %v", err)
	}
	if err := save(path, "site", cfg, newMemory(), detectors(cfg)); err != nil {
		t.Fatal(err)
	}
	if _, err := load(path, "site", cfg, detectors(cfg)); err != nil {
		t.Error(err)
	}
	other := cfg
	other.AuthFailures = 2
	if _, err := load(path, "site", other, detectors(other)); err == nil {
		t.Error("counts of another configuration were taken up")
	}
	if _, err := load(path, "elsewhere", cfg, detectors(cfg)); err == nil {
		t.Error("another site's memory was taken up")
	}
}

// Only what was put away is taken up; everything else means reading the
// stream again.
func FuzzCheckpoint(f *testing.F) {
	path := filepath.Join(f.TempDir(), "m.json")
	cfg := DefaultConfig()
	if err := save(path, "site", cfg, newMemory(), detectors(cfg)); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(`{"version":1,"origin":"site","memory":null,"detectors":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(path, "site", cfg, detectors(cfg)); (err == nil) != slices.Equal(text, good) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestTheConfigurationRefusesWhatItCannotDo(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                                 true,
		"auth_failures = 0":                true,
		"auth_stop = \"kill\"":             true,
		"auth_stop = \"halt\"":             false,
		"timeout_percent = 0":              false,
		"hung_percent = 100":               false,
		"disk_warning_percent = 95":        false,
		"disk_critical_percent = 0":        true,
		"silent_s = 1":                     false,
		"confirm_s = 0":                    false,
		"actor = \"Mon\"":                  false,
		"crash_rounds = 1":                 false,
		"crash_rounds = 0":                 true,
		"check_s = 301\n":                  false,
		"disk_stop = \"none\"\ntypo = 1\n": false,
	} {
		r := New()
		err := config.Decode("x.toml", []byte("[monitor]\n"+text+"\n"), r.Section())
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDetectorsOutliveTheirOwnForm(t *testing.T) {
	for _, d := range detectors(DefaultConfig()) {
		if text, err := json.Marshal(d); err != nil || len(text) < 5 {
			t.Errorf("%s has no memory to put away: %s %v", d.Name(), text, err)
		}
	}
}
