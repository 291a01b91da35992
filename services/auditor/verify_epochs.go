package auditor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
)

// LogFiles are the folder of a log and the file that holds its head, empty for none.
type LogFiles struct {
	Dir      string
	HeadFile string
}

// AllEpochs names the logs of a site's folder, all of them.
func (o *Options) AllEpochs(l site.Layout) {
	newest := l.Epoch()
	o.LogDir, o.HeadFile = l.AuditLogOf(newest), l.AuditHeadOf(newest)
	for n := events.FirstEpoch; n < newest; n++ {
		o.Before = append(o.Before, LogFiles{l.AuditLogOf(n), l.AuditHeadOf(n)})
	}
}

// epochs is what a verifier knows of the epochs around its log.
type epochs struct {
	before  *verifier // of the epoch before, nil if its log is not here
	genesis tlog.Entry

	opened       *events.EpochOpened // the first event that was not carried
	openedEntry  tlog.Entry
	carriedSums  []carriedSum // into this log
	expectedSums []carriedSum // what the next log has to hold
	carries      func(seq uint64, subject string) bool
	endedBy      string // why the next epoch began, empty for the newest
}

// carriedSum stands for an event, whichever log holds it.
type carriedSum struct {
	seq uint64
	sum [32]byte
}

func sumOf(e tlog.Entry) carriedSum {
	e.Prev, e.JobPrev = tlog.Hash{}, -1 // its place in one log
	return carriedSum{e.Seq, sha256.Sum256(e.Encode())}
}

// chain reads the logs of all epochs, from the first one on.
func (o Options) chain(ctx context.Context) ([]*verifier, error) {
	files := append(slices.Clone(o.Before), LogFiles{o.LogDir, o.HeadFile})
	var list []*verifier
	var before *verifier
	for i, f := range files {
		one := o
		one.LogDir, one.HeadFile, one.Anchor = f.Dir, f.HeadFile, nil
		if i < len(files)-1 {
			one.Bus = nil
		}
		v := newVerifier(one, before)
		if i < len(files)-1 {
			if open, err := openingOf(files[i+1].Dir); err != nil {
				v.integrity.Add(fmt.Sprintf("what opens the next epoch cannot be read: %v", err))
			} else {
				v.carries, v.endedBy = open.Carries(), open.Why
			}
			if v.endedBy != events.EpochRestored || !o.AskWitnesses { // else they may know of more than was restored
				v.options.Witnesses = nil
			}
		}
		if err := v.read(ctx); err != nil {
			return nil, err
		}
		list, before = append(list, v), v
	}
	share(list)
	o.giveAnchor(list)
	return list, nil
}

// newVerifier is one that goes on after the log before, nil for none.
func newVerifier(o Options, before *verifier) *verifier {
	v := &verifier{options: o, before: before, book: trust.New(o.Origin, o.RootKey), sessions: map[string]counter{}, said: map[string]bool{}}
	if before != nil {
		v.sessions, v.missing, v.newest = before.sessions, before.missing, before.newest
	}
	return v
}

// read reads the log and its heads.
func (v *verifier) read(ctx context.Context) (err error) {
	if v.headFile, err = v.readHeadFile(); err != nil {
		return fmt.Errorf("verify %s: %w", v.options.LogDir, err)
	}
	v.checkpoint = v.readCheckpoint()
	a := ahead{v: v}
	v.log, err = tlog.Verify(ctx, v.options.LogDir, &v.signers, a.take)
	a.work()
	return err
}

// share lets every log know what the later ones say about it.
func share(list []*verifier) {
	for i := len(list) - 2; i >= 0; i-- {
		list[i].words = append(list[i].words, list[i+1].words...)
		for key := range list[i+1].said {
			list[i].said[key] = true
		}
		for key := range list[i+1].texts.erased {
			list[i].texts.erase(key)
		}
	}
}

// giveAnchor hands the anchor to the log that it is of, or else to the newest.
func (o Options) giveAnchor(list []*verifier) {
	if o.Anchor == nil {
		return
	}
	at := list[len(list)-1]
	for _, v := range list {
		if v.log.Origin == originOf(string(o.Anchor)) {
			at = v
		}
	}
	at.options.Anchor = o.Anchor
}

// originOf is the origin of a signed head, empty if it cannot be read.
func originOf(checkpoint string) string {
	origin, _, err := tlog.ParseCheckpoint([]byte(checkpoint))
	if err != nil {
		return ""
	}
	return origin
}

// openingOf reads the event that opens the epoch of a log, whether it may be believed or
// not.
func openingOf(dir string) (*events.EpochOpened, error) {
	r, err := tlog.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head, err := r.Checkpoint()
	if err != nil {
		return nil, err
	}
	found := int64(-1)
	done := errors.New("found")
	err = r.Entries(1, head.Size, func(leaf int64, e tlog.Entry) error {
		if e.Kind == tlog.KindEvent && e.Seq > r.Through() {
			found = leaf
			return done
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, done):
		return nil, err
	case found < 0:
		return nil, errors.New("the log holds no event of its own yet")
	}
	rec, err := r.Record(found)
	if err != nil {
		return nil, err
	}
	d, _ := events.Find("epoch.opened", 1)
	p, err := events.Decode(d, rec.Payload)
	if err != nil {
		return nil, err
	}
	return p.(*events.EpochOpened), nil
}

// isCarried says whether an entry stands for an event of an epoch before.
func (v *verifier) isCarried(e tlog.Entry) bool {
	return e.Kind == tlog.KindEvent && e.Seq <= v.genesis.Old.Through
}

// visitCarried checks an event that another log holds, too. Where that log is here, it is
// enough that they are the same.
func (v *verifier) visitCarried(leaf int64, e tlog.Entry, rec *readRecord) {
	v.note(leaf, e.Seq)
	v.carriedSums = append(v.carriedSums, sumOf(e))
	if leaf < v.head() {
		v.headTime, v.report.ThroughSeq = e.Time, v.genesis.Old.Through
	}
	if rec != nil {
		opened, err := v.book.Judge(rec.read)
		if err != nil && v.before == nil {
			v.bad(leaf, e.Seq, codeOf(err), err.Error())
		}
		if _, erases := opened.Payload.(*events.TextErased); err == nil && (erases || v.before == nil) {
			v.texts.see(leaf, opened)
		}
	}
	v.noteTrust(leaf)
	v.expectCarried(e)
}

// expectCarried notes an event that the next log has to hold.
func (v *verifier) expectCarried(e tlog.Entry) {
	if v.carries != nil && e.Kind == tlog.KindEvent && v.carries(e.Seq, e.Subject) {
		v.expectedSums = append(v.expectedSums, sumOf(e))
	}
}

// beforeEpoch says whether a job's event follows one that this log does not hold, since
// the job had ended in an epoch before.
func (v *verifier) beforeEpoch(entry tlog.Entry, e events.Event) bool {
	return entry.JobPrev < 0 && e.Expect > 0 && e.Expect <= v.genesis.Old.Through
}

// opens checks a believable epoch.opened: only the first event of a log may be one.
func (v *verifier) opens(leaf int64, st events.Stored, e events.Event, p *events.EpochOpened) {
	before := 0
	if epoch, ok := events.ParseEpoch(lastWord(v.genesis.Origin)); ok {
		before = epoch - 1
	}
	if err := p.Follows(e, before); err != nil || st.Seq != v.genesis.Old.Through+1 {
		v.bad(leaf, st.Seq, codeWrongEpoch, fmt.Sprintf("it does not open this epoch: %v", err))
		return
	}
	v.opened = p
	v.openedEntry = tlog.Entry{Time: st.Time, Payload: sha256.Sum256(st.Data)}
}

// judgeEpoch checks that the log goes on where the one before ended.
func (v *verifier) judgeEpoch() {
	old := v.genesis.Old
	switch {
	case v.genesis.Kind != tlog.KindEpoch && v.before == nil:
		return
	case v.genesis.Kind != tlog.KindEpoch:
		v.integrity.Add("the log does not say which one it goes on after")
		return
	case v.opened == nil:
		v.integrity.Add(fmt.Sprintf("event %d, which has to open the epoch, does not, or may not be believed", old.Through+1))
		return
	case old.Why != v.opened.Why || !v.genesis.Created.Equal(v.openedEntry.Time) || v.genesis.Config != v.openedEntry.Payload:
		v.integrity.Add("the genesis is not that of the event that opens the epoch")
	}
	if v.before == nil {
		v.completeness.Add(fmt.Sprintf("the log goes on after %s, which is not here, so what was carried was not compared", old.Origin))
		return
	}
	last := v.before.log
	if old.Origin != last.Origin || old.Size != last.Size || old.Root != last.Root || old.Through != max(last.LastSeq, last.Old.Through) {
		v.integrity.Add(fmt.Sprintf("the log goes on after %d leaves of %s through %d with root %s, but that log has %d leaves through %d and root %s", old.Size, old.Origin,
			old.Through, base64.StdEncoding.EncodeToString(old.Root[:]), last.Size, last.LastSeq, base64.StdEncoding.EncodeToString(last.Root[:])))
	}
	v.judgeCarried()
	log, err := tlog.OpenReader(v.before.options.LogDir)
	if err != nil {
		v.integrity.Add(fmt.Sprintf("the log before cannot be compared: %v", err))
		return
	}
	defer log.Close()
	if err := namesHead(v.opened, log, last.Size); err != nil {
		v.integrity.Add(fmt.Sprintf("the event that opens the epoch: %v", err))
	}
	v.judgeLate(log)
}

// judgeCarried compares what was carried with what had to be.
func (v *verifier) judgeCarried() {
	want, got := v.before.expectedSums, v.carriedSums
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got), i < len(want) && want[i].seq < got[i].seq:
			v.integrity.Add(fmt.Sprintf("event %d was not carried into the epoch, though it had to be", want[i].seq))
		case i >= len(want), want[i].seq > got[i].seq:
			v.integrity.Add(fmt.Sprintf("event %d was carried into the epoch, though it is not listed, or is not in the log before", got[i].seq))
		case want[i].sum != got[i].sum:
			v.integrity.Add(fmt.Sprintf("event %d is not the same in this log and in the one before", got[i].seq))
		default:
			continue
		}
		return
	}
}

// judgeLate compares heads of the log before that were published in this epoch.
func (v *verifier) judgeLate(log *tlog.Reader) {
	for _, p := range v.past {
		if p.origin == "" || p.origin == v.log.Origin {
			continue
		}
		root, err := log.TreeHash(p.size)
		if p.origin != v.before.log.Origin || err != nil || base64.StdEncoding.EncodeToString(root[:]) != p.root {
			v.integrity.Add(fmt.Sprintf("leaf %d publishes a head of %d leaves of %s that no log here has", p.leaf, p.size, p.origin))
			v.firstBad(p.leaf)
		}
	}
}

// combine is the report of all epochs. What is wrong names its epoch.
func combine(chain []*verifier) Report {
	newest := chain[len(chain)-1]
	r := newest.report
	if len(chain) == 1 {
		return r
	}
	r.FirstBadLeaf, r.Gaps, r.Faults, r.Notes, r.Stamps = nil, nil, nil, nil, nil
	r.Unbelieved, r.Unreported, r.Texts, r.Erased = 0, 0, 0, 0
	var bad [3]reasons
	for _, v := range chain {
		name := lastWord(v.log.Origin)
		for i, verdict := range []Verdict{v.report.Integrity, v.report.Authenticity, v.report.Completeness} {
			if !verdict.OK {
				bad[i].Add(name + ": " + verdict.Reason)
			}
		}
		if r.FirstBadLeaf == nil && v.report.FirstBadLeaf != nil {
			r.FirstBadLeaf, r.FirstBadIn = v.report.FirstBadLeaf, name
		}
		r.Gaps, r.Faults = append(r.Gaps, v.report.Gaps...), append(r.Faults, v.report.Faults...)
		r.Unbelieved, r.Unreported = r.Unbelieved+v.report.Unbelieved, r.Unreported+v.report.Unreported
		r.Texts, r.Erased = r.Texts+v.report.Texts, r.Erased+v.report.Erased
		r.Stamps = append(r.Stamps, v.report.Stamps...)
		for _, n := range v.report.Notes {
			r.Notes = append(r.Notes, name+": "+n)
		}
		if v != newest {
			r.Epochs = append(r.Epochs, EpochReport{
				Origin: v.log.Origin, Size: v.report.Size, Root: v.report.Root, ThroughSeq: v.report.ThroughSeq, Events: v.report.Events, EndedBy: v.endedBy,
			})
		}
	}
	in := fmt.Sprintf("in all %d epochs ", len(chain))
	r.Integrity = bad[0].Verdict(in + newest.report.Integrity.Reason)
	r.Authenticity = bad[1].Verdict(in + newest.report.Authenticity.Reason)
	r.Completeness = bad[2].Verdict(in + newest.report.Completeness.Reason)
	return r
}
