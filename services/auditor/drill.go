package auditor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/tlog"
)

// drillLayers names the layers of defence, each of which includes those before it.
var drillLayers = [...]string{"chain", "signed head", "lock", "witness", "signatures", "counters"}

// Drilled is one row of a drill: an attack, and by which layers it is found.
type Drilled struct {
	Attack string `json:"attack"`
	// Found says for each layer, with all before it, whether it finds the attack.
	Found [len(drillLayers)]bool `json:"found"`
	// KnownLimit marks the one attack that no layer can find.
	KnownLimit bool `json:"known_limit,omitzero"`
}

// DrillReport is the whole matrix.
type DrillReport struct {
	Layers   []string  `json:"layers"`
	Attacks  []Drilled `json:"attacks"`
	Detected int       `json:"detected"`
	OK       bool      `json:"ok"` // nothing but the known limit is missed
}

// Drill attacks a log in every way of the table and says what finds it. The log, its
// keys, its lock and its witness are made for the drill in dir, which must be empty;
// nothing else is touched.
func Drill(ctx context.Context, dir string) (report DrillReport, err error) {
	d := &drill{}
	if d.site, err = newDrillSite(dir); err != nil {
		return report, fmt.Errorf("prepare the drill: %w", err)
	}
	defer d.site.stop()
	if err := d.prepare(ctx); err != nil {
		return report, fmt.Errorf("prepare the drill: %w", err)
	}
	report = DrillReport{Layers: drillLayers[:], OK: true}
	for i, a := range attacks {
		row, err := d.run(ctx, i, a)
		if err != nil {
			return report, fmt.Errorf("drill %q: %w", a.name, err)
		}
		report.Attacks = append(report.Attacks, row)
		if row.Found[len(row.Found)-1] {
			report.Detected++
		} else if !row.KnownLimit {
			report.OK = false
		}
	}
	return report, nil
}

// drill is one run.
type drill struct {
	site     *drillSite
	old, now drillHost // the honest host, earlier and now
	early    int       // events under the old head
}

// prepare makes an honest host, whose head is witnessed twice, and checks that nothing
// is found in it: a detector that always fires detects nothing.
func (d *drill) prepare(ctx context.Context) (err error) {
	s := d.site
	s.at = time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := s.trust(); err != nil {
		return err
	}
	if err := s.live(0, 4); err != nil {
		return err
	}
	d.early = len(s.history)
	if d.old, err = s.build("old", s.signer, s.history, d.early); err != nil {
		return err
	}
	if err := s.cosign(ctx, d.old); err != nil {
		return err
	}
	if err := s.live(4, 9); err != nil {
		return err
	}
	if d.now, err = s.build("now", s.signer, s.history, d.early, len(s.history)); err != nil {
		return err
	}
	if err := s.cosign(ctx, d.now); err != nil {
		return err
	}
	found, err := d.detect(ctx, d.now)
	if err == nil && found != [len(drillLayers)]bool{} {
		err = errors.New("the untouched log is not clean")
	}
	return err
}

// run carries one attack out on a copy and looks for it. What the witness has learned
// meanwhile is forgotten afterwards.
func (d *drill) run(ctx context.Context, i int, a attack) (Drilled, error) {
	h := drillHost{filepath.Join(d.site.dir, fmt.Sprintf("attack-%d", i+1))}
	memory := filepath.Join(d.site.dir, "witness")
	before := filepath.Join(d.site.dir, fmt.Sprintf("memory-%d", i+1))
	history, n, last, at := d.site.history, copyOf(d.site.n), copyOf(d.site.last), d.site.at
	if err := errors.Join(os.CopyFS(h.dir, os.DirFS(d.now.dir)), os.CopyFS(before, os.DirFS(memory))); err != nil {
		return Drilled{}, err
	}
	if err := a.do(ctx, d, &h); err != nil {
		return Drilled{}, err
	}
	found, err := d.detect(ctx, h)
	d.site.history, d.site.n, d.site.last, d.site.at = history[:len(history):len(history)], n, last, at
	err = errors.Join(err, os.RemoveAll(memory), os.Rename(before, memory))
	return Drilled{Attack: a.name, Found: found, KnownLimit: a.limit}, err
}

func copyOf(m map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// detect asks each layer of defence in turn. Each sees what those before it see.
func (d *drill) detect(ctx context.Context, h drillHost) (found [len(drillLayers)]bool, err error) {
	key, err := note.NewVerifier(d.site.vkey)
	if err != nil {
		return found, err
	}
	log, err := tlog.Verify(ctx, h.log(), note.VerifierList(key), nil)
	if err != nil {
		return found, err
	}
	has := func(list ...tlog.What) bool {
		for _, what := range list {
			if log.Has(what) {
				return true
			}
		}
		return false
	}
	o := Options{LogDir: h.log(), Origin: drillOrigin, RootKey: d.site.signers["root"].Public(), Now: func() time.Time { return d.site.at.Add(time.Minute) }}
	alone, err := Verify(ctx, o)
	if err != nil {
		return found, err
	}
	o.HeadFile = filepath.Join(h.head(), "head.lock")
	locked, err := Verify(ctx, o)
	if err != nil {
		return found, err
	}
	o.Witnesses, o.AskWitnesses = &d.site.policy, true
	asked, err := Verify(ctx, o)
	if err != nil {
		return found, err
	}
	found = [...]bool{
		has(tlog.ChainBroken, tlog.SeqHole, tlog.EntryMalformed, tlog.JobLink),
		has(tlog.RootMismatch, tlog.Truncated, tlog.CheckpointSignature, tlog.CheckpointMissing, tlog.CheckpointMalformed, tlog.CheckpointOrigin),
		alone.Integrity.OK && !locked.Integrity.OK,
		locked.Integrity.OK && !asked.Integrity.OK,
		!asked.Authenticity.OK || has(tlog.PayloadDigest, tlog.HeadersDigest),
		!asked.Completeness.OK,
	}
	for i := 1; i < len(found); i++ {
		found[i] = found[i] || found[i-1]
	}
	return found, nil
}
