package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
)

const (
	// unseenAfter is when a machine that nobody observes any more is unknown;
	// observers speak every five minutes.
	unseenAfter = 16 * time.Minute
	// maxDisks bounds what is remembered; the ones unseen for longest go.
	maxDisks = 1024
	// relief is how many percent a disk has to win back before it is less bad.
	relief = 1
)

// disk is the newest that was said of one file system.
type disk struct {
	Host, Path  string
	Total, Free int64
	Severity    string // empty while all is well
	At          time.Time
}

func (d disk) used() float64 { return 100 * float64(d.Total-d.Free) / float64(d.Total) }

// disks watches for disks that fill up: an agent on a full disk loses its work.
type disks struct {
	Seen map[string]disk

	warning, critical int
}

func (*disks) Name() string { return nameDisk }

func (*disks) Calm() string { return "the disk has room again, or nobody observes it any more" }

func (d *disks) Observe(e events.Event) {
	o, ok := e.Payload.(*events.HostObserved)
	if !ok || d.critical == 0 {
		return
	}
	for _, m := range o.Disks {
		if m.TotalBytes <= 0 || m.FreeBytes < 0 || m.FreeBytes > m.TotalBytes {
			continue
		}
		key := o.Host + ":" + m.Path
		now := disk{Host: o.Host, Path: m.Path, Total: m.TotalBytes, Free: m.FreeBytes, At: e.Time}
		now.Severity = d.grade(now.used(), d.Seen[key].Severity)
		d.Seen[key] = now
	}
	for len(d.Seen) > maxDisks {
		d.forgetOldest()
	}
}

// grade is how bad a share is, given how bad it was.
func (d *disks) grade(used float64, before string) string {
	warning, critical := float64(d.warning), float64(d.critical)
	switch before {
	case events.SeverityCritical:
		warning, critical = warning-relief, critical-relief
	case events.SeverityWarning:
		warning -= relief
	}
	switch {
	case used >= critical:
		return events.SeverityCritical
	case used >= warning:
		return events.SeverityWarning
	}
	return ""
}

func (d *disks) forgetOldest() {
	oldest := ""
	for key, m := range d.Seen {
		if oldest == "" || m.At.Before(d.Seen[oldest].At) {
			oldest = key
		}
	}
	delete(d.Seen, oldest)
}

func (d *disks) Findings(now time.Time) []Finding {
	var out []Finding
	for key, m := range d.Seen {
		if m.Severity == "" || now.Sub(m.At) > unseenAfter || d.critical == 0 {
			continue
		}
		out = append(out, Finding{
			About: key, Host: m.Host, Severity: m.Severity, Grade: int64(m.used()),
			Summary: fmt.Sprintf("the disk under %s on %s is %.1f %% full, %d MiB are free", m.Path, m.Host, m.used(), m.Free>>20),
		})
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.About, b.About) })
	return out
}
