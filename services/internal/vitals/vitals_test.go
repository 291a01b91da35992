package vitals

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
)

func TestObserveMeasuresThisMachine(t *testing.T) {
	o, err := Observe(t.TempDir(), t.TempDir(), "/")
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	if o.Host != host || len(o.Disks) == 0 || len(o.Disks) > 2 {
		t.Fatalf("%+v", o)
	}
	for _, d := range o.Disks {
		if d.TotalBytes <= 0 || d.FreeBytes < 0 || d.FreeBytes > d.TotalBytes || d.Level == "" || !filepath.IsAbs(d.Path) {
			t.Errorf("%+v", d)
		}
	}
	if runtime.GOOS == "linux" && (o.MemoryTotalBytes < 1<<20 || o.MemoryAvailableBytes <= 0) {
		t.Errorf("memory %d of %d", o.MemoryAvailableBytes, o.MemoryTotalBytes)
	}
}

func TestAPathThatIsGoneIsNamedAndTheRestIsMeasured(t *testing.T) {
	o, err := Observe(filepath.Join(t.TempDir(), "gone"), "/")
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err %v", err)
	}
	if len(o.Disks) != 1 || o.Disks[0].Path != "/" {
		t.Errorf("%+v", o.Disks)
	}
}

func TestALevelFallsOnlyAPointBelowItsBound(t *testing.T) {
	var g Gauge
	for _, step := range []struct {
		used float64
		want string
	}{
		{89.9, "ok"}, {90, "warning"}, {89.5, "warning"}, {88.9, "ok"}, {89.5, "ok"}, {96, "critical"},
		{94.5, "critical"}, {93.9, "warning"}, {94.9, "warning"}, {95, "critical"}, {10, "ok"},
	} {
		if got := g.level("disk", step.used, diskWarning, diskCritical); got != step.want {
			t.Errorf("at %.1f %%: %s, want %s", step.used, got, step.want)
		}
	}
}

// log is a stream that may be away.
type log struct {
	said  []events.HostObserved
	seq   uint64
	fails error
	lost  bool // it is stored, and the answer is lost
}

func (l *log) Last(context.Context, string) (events.Stored, bool, error) {
	return events.Stored{Seq: l.seq}, l.seq > 0, nil
}

func (l *log) Append(_ context.Context, _ events.Subject, expect uint64, payload any) (uint64, error) {
	if l.fails != nil && !l.lost {
		return 0, l.fails
	}
	if expect != l.seq {
		return 0, errors.New("conflict")
	}
	l.seq += 10
	l.said = append(l.said, *payload.(*events.HostObserved))
	return l.seq, l.fails
}

func TestTheReporterSpeaksOnChangeAndEveryFiveMinutes(t *testing.T) {
	l := &log{}
	r := Reporter{Gauge: Gauge{Paths: []string{"/"}}, Scope: "default", Actor: "worker", Session: "00000000000000000001", Bus: l, Voice: l, Log: slog.New(slog.DiscardHandler)}
	now := time.Unix(1000, 0)
	look := func(after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		r.look(t.Context(), now)
		if len(l.said) != want {
			t.Fatalf("said %d times, want %d", len(l.said), want)
		}
	}
	look(0, 1)
	look(Look, 1)
	look(Every, 2)
	r.level = "another"
	look(Look, 3)
	l.fails = errors.New("away")
	look(Every, 3)
	l.lost = true
	look(Look, 4)
	l.fails, l.lost = nil, false
	look(Look, 5) // it could not know that it was stored; where it stands is read
	look(Look, 5)
}
