package auditor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/tlog"
)

// LiveDrilled is one attack on a copy of a real log.
type LiveDrilled struct {
	Attack string `json:"attack"`
	Found  bool   `json:"found"`
	By     string `json:"by,omitempty"` // the verdicts that found it, and the first reason
}

// LiveDrillReport says what was found of the attacks that need no key.
type LiveDrillReport struct {
	Size     int64         `json:"size"` // leaves under the head that was attacked
	Attacks  []LiveDrilled `json:"attacks"`
	Detected int           `json:"detected"`
	OK       bool          `json:"ok"` // every attack was found
}

// DrillCopy attacks copies of a real log in every way that needs no key of the site, and
// verifies each as [Verify] would. The log is only read, also while an auditor writes it.
// dir must be empty.
func DrillCopy(ctx context.Context, o Options, dir string) (LiveDrillReport, error) {
	d := &liveDrill{o: o, dir: dir}
	if err := d.prepare(ctx); err != nil {
		return LiveDrillReport{}, fmt.Errorf("prepare the drill: %w", err)
	}
	report := LiveDrillReport{Size: d.head.Size, OK: true}
	for i, a := range liveAttacks {
		row, err := d.run(ctx, i, a)
		if errors.Is(err, errNoTarget) {
			continue
		}
		if err != nil {
			return report, fmt.Errorf("drill %q: %w", a.name, err)
		}
		report.Attacks = append(report.Attacks, row)
		if row.Found {
			report.Detected++
		}
		report.OK = report.OK && row.Found
	}
	return report, nil
}

// errNoTarget says that a log holds nothing that an attack could change.
var errNoTarget = errors.New("the log is too short for the attack")

// liveDrill is one run of DrillCopy.
type liveDrill struct {
	o     Options
	dir   string
	base  Report // of the untouched copy
	head  tlog.Checkpoint
	leaf  []tlog.Record // of each leaf under the head; zero for no event
	older []byte        // a signed head of before, nil for none
	size  int64         // of the older head
}

func (d *liveDrill) copy() drillHost { return drillHost{filepath.Join(d.dir, "copy")} }

// copyTries is how often a log is copied until head and files fit: its auditor may go on.
const copyTries = 20

// prepare copies the log and reads it. A copy that is not intact by itself shows nothing.
func (d *liveDrill) prepare(ctx context.Context) (err error) {
	for range copyTries {
		if err = d.copyLog(); err != nil {
			return err
		}
		if d.base, err = Verify(ctx, d.options(d.copy())); err != nil {
			return err
		}
		if d.base.Integrity.OK {
			return d.read()
		}
	}
	return fmt.Errorf("the log is not intact before any attack: %s", d.base.Integrity.Reason)
}

func (d *liveDrill) copyLog() error {
	h := d.copy()
	if err := errors.Join(os.RemoveAll(h.dir), os.MkdirAll(h.head(), 0o700), os.CopyFS(h.log(), os.DirFS(d.o.LogDir))); err != nil {
		return err
	}
	b, err := os.ReadFile(d.o.HeadFile)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.head(), "head.lock"), b, 0o600)
}

// options verify a copy offline.
func (d *liveDrill) options(h drillHost) Options {
	o := d.o
	o.LogDir, o.HeadFile, o.Bus, o.Witnesses, o.Anchor = h.log(), filepath.Join(h.head(), "head.lock"), nil, nil, nil
	return o
}

func (d *liveDrill) read() error {
	r, err := tlog.OpenReader(d.copy().log())
	if err != nil {
		return err
	}
	defer r.Close()
	if d.head, err = r.Checkpoint(); err != nil {
		return err
	}
	d.leaf = make([]tlog.Record, d.head.Size)
	return r.Entries(1, d.head.Size, func(leaf int64, e tlog.Entry) error {
		if e.Kind != tlog.KindEvent {
			return nil
		}
		rec, err := r.Record(leaf)
		if err != nil {
			return err
		}
		d.leaf[leaf] = rec
		if ev, err := events.Open(d.o.Origin, storedOf(rec)); err == nil {
			if p, ok := ev.Payload.(*events.AuditSealed); ok && p.Size > 2 && p.Size < d.head.Size {
				d.older, d.size = []byte(p.Note), p.Size
			}
		}
		return nil
	})
}

// run carries one attack out on a copy of the copy.
func (d *liveDrill) run(ctx context.Context, i int, a liveAttack) (LiveDrilled, error) {
	h := drillHost{filepath.Join(d.dir, fmt.Sprintf("attack-%d", i+1))}
	defer os.RemoveAll(h.dir)
	if err := os.CopyFS(h.dir, os.DirFS(d.copy().dir)); err != nil {
		return LiveDrilled{}, err
	}
	if err := a.do(d, h); err != nil {
		return LiveDrilled{}, err
	}
	r, err := Verify(ctx, d.options(h))
	if err != nil {
		return LiveDrilled{}, err
	}
	row := LiveDrilled{Attack: a.name}
	for _, v := range []struct {
		name    string
		is, was Verdict
	}{{"integrity", r.Integrity, d.base.Integrity}, {"authenticity", r.Authenticity, d.base.Authenticity}, {"completeness", r.Completeness, d.base.Completeness}} {
		if !v.is.OK && v.is != v.was {
			row.Found = true
			if row.By == "" {
				row.By = v.name + ": " + v.is.Reason
			}
		}
	}
	return row, nil
}

// liveAttack changes a copy.
type liveAttack struct {
	name string
	do   func(d *liveDrill, h drillHost) error
}

// liveAttacks are those of the table that need neither the log's key nor the bus.
var liveAttacks = []liveAttack{
	{"edit one entry", func(d *liveDrill, h drillHost) error {
		return change(filepath.Join(h.log(), "entries.log"), func(b []byte) []byte {
			b[len(b)/2] ^= 1
			return b
		})
	}},
	{"edit an entry and repair the chain", retold(func(h []tlog.Record, at int) []tlog.Record {
		h[at].Subject += "x"
		return h
	})},
	{"delete in the middle, repair the chain", retold(func(h []tlog.Record, at int) []tlog.Record { return slices.Delete(h, at, at+1) })},
	{"insert an event, repair the chain", retold(func(h []tlog.Record, at int) []tlog.Record { return slices.Insert(h, at, h[at]) })},
	{"swap two events, repair the chain", retold(func(h []tlog.Record, at int) []tlog.Record {
		h[at], h[at+1] = h[at+1], h[at]
		return h
	})},
	{"cut below the signed head", retold(func(h []tlog.Record, at int) []tlog.Record { return h[:len(h)-1] })},
	{"cut, and put an older signed head back", func(d *liveDrill, h drillHost) error {
		if d.older == nil {
			return errNoTarget
		}
		err := retell(d, h, func(r []tlog.Record, _ int) []tlog.Record { return r[:d.size-1] })
		return errors.Join(err, os.WriteFile(filepath.Join(h.log(), "checkpoint"), d.older, 0o600))
	}},
	{"rebuild without the log's key", func(d *liveDrill, h drillHost) error {
		return retell(d, h, func(r []tlog.Record, at int) []tlog.Record { return slices.Delete(r, at, at+1) })
	}},
	{"swap a stored payload", func(d *liveDrill, h drillHost) error {
		return change(filepath.Join(h.log(), "raw.log"), func(b []byte) []byte {
			b[len(b)/2] ^= 1
			return b
		})
	}},
	{"take the head away that is kept elsewhere", func(_ *liveDrill, h drillHost) error {
		return os.Remove(filepath.Join(h.head(), "head.lock"))
	}},
	{"take the signed head away", func(_ *liveDrill, h drillHost) error {
		return os.Remove(filepath.Join(h.log(), "checkpoint"))
	}},
}

// retold tells another history and keeps the honest checkpoint.
func retold(tell func(h []tlog.Record, at int) []tlog.Record) func(*liveDrill, drillHost) error {
	return func(d *liveDrill, h drillHost) error {
		if err := retell(d, h, tell); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(h.log(), "checkpoint"), d.head.Note, 0o600)
	}
}

// retell puts a log with another history into a copy, chained and signed by a stranger.
// What is told about is the events behind the first leaf; gaps are left out of it.
func retell(d *liveDrill, h drillHost, tell func(h []tlog.Record, at int) []tlog.Record) error {
	r, err := tlog.OpenReader(d.copy().log())
	if err != nil {
		return err
	}
	defer r.Close()
	g, err := r.Genesis()
	if err != nil {
		return err
	}
	var history []tlog.Record
	for _, rec := range d.leaf {
		if rec.Seq > g.Old.Through {
			history = append(history, rec)
		}
	}
	if len(history) < 4 || g.Old.Through > 0 && d.size > 0 && d.size-1 > int64(len(history)) {
		return errNoTarget
	}
	first := history[0].Seq
	history = tell(history, len(history)/2)
	stranger, err := keys.GenerateCheckpointKey(g.Origin)
	if err != nil {
		return err
	}
	made := h.dir + "-made"
	defer os.RemoveAll(made)
	if err := os.MkdirAll(filepath.Join(made, "head"), 0o700); err != nil {
		return err
	}
	carried := func(add func(tlog.Record, tlog.Meta) error) error {
		for _, rec := range d.leaf {
			if rec.Seq > 0 && rec.Seq <= g.Old.Through {
				if err := add(rec, metaOf(storedOf(rec))); err != nil {
					return err
				}
			}
		}
		return nil
	}
	l, err := tlog.Continue(filepath.Join(made, "log"), g, carried, stranger.Signer(), tlog.FileLock(filepath.Join(made, "head")))
	if err != nil {
		return err
	}
	for i, rec := range history {
		rec.Seq = first + uint64(i)
		if _, err := l.Append(rec, metaOf(storedOf(rec))); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	_, err = l.Seal()
	return errors.Join(err, l.Close(), os.RemoveAll(h.log()), os.Rename(filepath.Join(made, "log"), h.log()))
}
