package vitals

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/banksman/banksman/events"
)

// Bounds of the levels, in percent used.
const (
	diskWarning    = 90
	diskCritical   = 95
	memoryWarning  = 95
	memoryCritical = 98
	// relief is how far below its bound a level falls again.
	relief = 1
)

// Observe measures the machine once, without a memory of earlier levels.
func Observe(paths ...string) (events.HostObserved, error) {
	g := Gauge{Paths: paths}
	return g.Read()
}

// Gauge measures again and again. It is for one goroutine.
type Gauge struct {
	Paths []string // folders whose file systems are measured

	levels map[string]string
}

// Read measures. With an error the reading lacks what the error names.
func (g *Gauge) Read() (events.HostObserved, error) {
	o := events.HostObserved{Level: events.LevelOK, Disks: []events.Disk{}}
	var faults []error
	var err error
	if o.Host, err = os.Hostname(); err != nil {
		return o, fmt.Errorf("observe the machine: find its name: %w", err)
	}
	seen := map[uint64]bool{}
	for _, path := range g.Paths {
		mount, device, err := mountOf(path)
		if err != nil {
			faults = append(faults, fmt.Errorf("find the disk under %s: %w", path, err))
			continue
		}
		if seen[device] {
			continue
		}
		seen[device] = true
		total, free, err := measure(mount)
		if err != nil || total <= 0 {
			faults = append(faults, err) // some file systems have no size
			continue
		}
		d := events.Disk{Path: mount, TotalBytes: total, FreeBytes: free}
		d.Level = g.level("disk "+mount, usedPercent(total, free), diskWarning, diskCritical)
		o.Level = worse(o.Level, d.Level)
		o.Disks = append(o.Disks, d)
	}
	if o.MemoryTotalBytes, o.MemoryAvailableBytes, err = memory(); err != nil {
		faults = append(faults, err)
	}
	if o.MemoryTotalBytes > 0 {
		used := usedPercent(o.MemoryTotalBytes, o.MemoryAvailableBytes)
		o.Level = worse(o.Level, g.level("memory", used, memoryWarning, memoryCritical))
	}
	return o, errors.Join(faults...)
}

// level grades a share and remembers it.
func (g *Gauge) level(what string, used float64, warning, critical float64) string {
	switch g.levels[what] {
	case events.LevelCritical:
		warning, critical = warning-relief, critical-relief
	case events.LevelWarning:
		warning -= relief
	}
	level := events.LevelOK
	switch {
	case used >= critical:
		level = events.LevelCritical
	case used >= warning:
		level = events.LevelWarning
	}
	if g.levels == nil {
		g.levels = map[string]string{}
	}
	g.levels[what] = level
	return level
}

func usedPercent(total, free int64) float64 { return 100 * float64(total-free) / float64(total) }

// worse is the worse of two levels.
func worse(a, b string) string {
	for _, level := range []string{events.LevelCritical, events.LevelWarning} {
		if a == level || b == level {
			return level
		}
	}
	return events.LevelOK
}

// mountOf is the uppermost folder on the file system of a path, so that
// everybody on a machine names a disk alike.
func mountOf(path string) (mount string, device uint64, err error) {
	mount, err = filepath.EvalSymlinks(path)
	if err != nil {
		return path, 0, err
	}
	if device, err = deviceOf(mount); err != nil {
		return path, 0, err
	}
	for mount != "/" {
		above := filepath.Dir(mount)
		if d, err := deviceOf(above); err != nil || d != device {
			break
		}
		mount = above
	}
	return mount, device, nil
}

func deviceOf(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("the system does not say on which device it lies")
	}
	return uint64(st.Dev), nil
}

// measure reads the size of a file system.
func measure(path string) (total, free int64, err error) {
	u, err := disk.Usage(path)
	if err != nil {
		return 0, 0, fmt.Errorf("measure the disk under %s: %w", path, err)
	}
	return int64(u.Total), int64(u.Free), nil
}

// memory reads the machine's own count.
func memory() (total, available int64, err error) {
	m, err := mem.VirtualMemory()
	if err != nil {
		return 0, 0, fmt.Errorf("measure the memory: %w", err)
	}
	return int64(m.Total), int64(min(m.Available, m.Total)), nil
}
