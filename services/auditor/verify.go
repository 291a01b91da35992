package auditor

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
	"github.com/banksman/banksman/services/internal/witness"
)

// Newest tells what the bus holds, for freshness.
type Newest interface {
	// LastNonAuditSeq is the sequence of the last event that is not the auditor's
	// own, 0 if there is none.
	LastNonAuditSeq(ctx context.Context) (uint64, error)
}

// Options say what to verify and what to believe.
type Options struct {
	LogDir   string         // folder of the log
	HeadFile string         // the head that is kept elsewhere, empty for none
	Before   []LogFiles     // the logs of the epochs before, from the first one on
	Origin   string         // the site's name
	RootKey  keys.PublicKey // pinned; trust files are believed if it signed them
	MaxAge   time.Duration  // without a bus, how old a head may be; 0 is 24 hours
	Bus      Newest         // nil to verify offline
	TSARoots *x509.CertPool // who may vouch for time-stamping authorities, nil for nobody
	Texts    Texts          // nil where the words of people cannot be asked for
	// Witnesses says whose cosignatures the head needs, nil for nobody's.
	Witnesses    *witness.Policy
	AskWitnesses bool // also ask each witness that has a URL
	// Anchor is a signed head that was kept elsewhere; the log must have grown out of it.
	Anchor []byte
	Now    func() time.Time
	// Progress, if set, is told how many leaves of how many were checked.
	Progress func(done, all int64)
}

// defaultMaxAge is how old a head may be when nobody can be asked.
const defaultMaxAge = 24 * time.Hour

// sealWait bounds the wait for the seal of what was stored before the call.
const sealWait = 5 * time.Second

// Verify checks a log. It changes nothing and may run beside a live auditor. What is
// wrong with the log is in the Report; an error means that there is nothing to check
// or that it cannot be read.
func Verify(ctx context.Context, o Options) (Report, error) {
	if _, err := o.RootKey.Bytes(); err != nil {
		return Report{}, fmt.Errorf("verify %s: root key: %w", o.LogDir, err)
	}
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	target, busErr := o.target(ctx)
	chain, err := o.chain(ctx)
	if err != nil {
		return Report{}, err
	}
	for _, v := range chain {
		if err := v.judge(ctx); err != nil {
			return Report{}, fmt.Errorf("verify %s: %w", v.options.LogDir, err)
		}
	}
	v := chain[len(chain)-1]
	v.report.Freshness = v.freshness(target, busErr)
	return combine(chain), nil
}

// judge weighs what was read.
func (v *verifier) judge(ctx context.Context) error {
	v.judgeLog(&v.log)
	v.judgeSigner()
	v.judgeHeadFile(v.headFile, &v.log)
	v.judgeEpoch()
	v.judgeEvents()
	v.judgeTail(ctx, v.log.Live)
	v.judgeWitnesses(ctx, v.checkpoint)
	v.judgePast(&v.log)
	if err := errors.Join(v.judgeStamps(), v.judgeTexts(ctx)); err != nil {
		return err
	}
	v.finish(&v.log)
	return nil
}

// target is what the head must cover, when there is a bus. It waits a little for the
// seal of what is stored already.
func (o *Options) target(ctx context.Context) (seq uint64, err error) {
	if o.Bus == nil {
		return 0, nil
	}
	if seq, err = o.Bus.LastNonAuditSeq(ctx); err != nil {
		return 0, err
	}
	awaitSeal(ctx, o.LogDir, seq)
	return seq, nil
}

// awaitSeal waits, up to sealWait, until the checkpoint of a folder covers a sequence.
func awaitSeal(ctx context.Context, dir string, seq uint64) {
	ctx, cancel := context.WithTimeout(ctx, sealWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for sealedThrough(dir) < seq {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sealedThrough is what the checkpoint in a folder covers, 0 if that cannot be read.
func sealedThrough(dir string) uint64 {
	r, err := tlog.OpenReader(dir)
	if err != nil {
		return 0
	}
	defer r.Close()
	cp, err := r.Checkpoint()
	if err != nil || cp.Size < 1 {
		return 0
	}
	at, err := positionAt(r, cp.Size)
	if err != nil {
		return 0
	}
	return at.Through
}

// verifier is one run of Verify.
type verifier struct {
	options Options
	book    *trust.Book
	report  Report
	signers heldSigners

	log        tlog.Report
	headFile   []byte
	checkpoint []byte
	epochs

	integrity, authenticity, completeness reasons

	sealedTrust *events.TrustPublished // in force at the head
	files       []fileAt               // every trust file, by leaf
	headTime    time.Time
	newest      time.Time // latest stream time seen
	witnessedAt time.Time // as of when a quorum knew of no larger head
	unwitnessed error
	tail        int64 // events beyond the head that are not audit events
	tailSeq     uint64

	next     int64 // leaf that visit expects
	runs     []run
	gaps     []Gap
	missing  uint64 // sequences in gaps so far
	sessions map[string]counter
	words    []acknowledgement
	order    []unbelievedEvent
	said     map[string]bool // seq/code named by a believable violation_found
	texts    textCheck
	past     []pastHead // what believable audit.sealed events say
}

type unbelievedEvent struct {
	leaf   int64
	seq    uint64
	code   string
	detail string
}

// head is the size that the checkpoint claims. It is known from the first leaf on,
// because the checkpoint is read before.
func (v *verifier) head() int64 { return v.signers.size }

// visit sees every leaf in order.
func (v *verifier) visit(leaf int64, e tlog.Entry, rec *readRecord) {
	sealed := leaf < v.head()
	if leaf > v.next {
		v.completeness.Add(fmt.Sprintf("leaves %d to %d cannot be read", v.next, leaf-1))
	}
	v.next = leaf + 1
	if leaf == 0 {
		v.genesis = e
	}
	if v.isCarried(e) {
		v.visitCarried(leaf, e, rec)
		return
	}
	v.expectCarried(e)
	if seq, ok := e.LastSeq(); ok && sealed {
		v.report.ThroughSeq = max(seq, v.genesis.Old.Through)
	}
	switch {
	case e.Kind == tlog.KindGap:
		v.gaps, v.missing = append(v.gaps, Gap{From: e.From, To: e.To}), v.missing+e.To-e.From+1
		if !sealed {
			v.tail, v.tailSeq = v.tail+1, e.To
		}
	case e.Kind == tlog.KindEvent:
		v.report.Events++
		if sealed {
			v.headTime = e.Time
		} else if !isAudit(e.Subject) {
			v.tail, v.tailSeq = v.tail+1, e.Seq
		}
		v.note(leaf, e.Seq)
		v.clock(leaf, e.Seq, e.Time)
		if rec != nil {
			v.event(leaf, e, rec)
		} else if id, err := events.ParseID(e.ID); err == nil { // tlog has reported what is wrong
			v.session(e.Seq, id)
		}
	}
	v.noteTrust(leaf)
}

// noteTrust remembers which trust file is in force after a leaf.
func (v *verifier) noteTrust(leaf int64) {
	if file := v.book.Current(); file != nil && (len(v.files) == 0 || v.files[len(v.files)-1].file != file) {
		v.files = append(v.files, fileAt{leaf, file})
	}
	if leaf == v.head()-1 {
		v.sealedTrust = v.book.Current()
	}
}

// event checks one event against the trust file in force.
func (v *verifier) event(leaf int64, entry tlog.Entry, rec *readRecord) {
	st := rec.st
	if !evidence.Names(entry, metaOf(st)) {
		v.bad(leaf, st.Seq, "entry_meta", "the entry names another id, job, actor or signature than the message")
	}
	e, err := v.book.Judge(rec.read)
	var unknown *events.UnknownKind
	if err != nil && !errors.As(err, &unknown) {
		v.bad(leaf, st.Seq, codeOf(err), err.Error())
		return
	}
	if before := v.seqOf(entry.JobPrev); entry.Job != "" && e.Expect != before && !v.inGap(e.Expect) && !v.beforeEpoch(entry, e) {
		v.bad(leaf, st.Seq, codeWrongPosition, fmt.Sprintf("signed for the place after %d, the job's last was %d", e.Expect, before))
	}
	v.session(st.Seq, e.ID)
	v.texts.see(leaf, e)
	switch p := e.Payload.(type) {
	case *events.AuditViolationFound:
		v.said[unsaid{Seq: p.Seq, Code: p.Code}.key()] = true
	case *events.AuditFaultFound:
		v.report.Faults = append(v.report.Faults, StatedFault{Seq: st.Seq, Code: p.Code, Detail: p.Detail})
	case *events.GapAcknowledged:
		v.words = append(v.words, acknowledgement{seq: st.Seq, actor: e.ID.Actor, GapAcknowledged: p})
	case *events.AuditSealed:
		if p.Size > 0 {
			v.past = append(v.past, pastHead{leaf: leaf, size: p.Size, root: p.Root, origin: originOf(p.Note)})
		}
	case *events.EpochOpened:
		v.opens(leaf, st, e, p)
	}
}

// bad notes an event that may not be believed.
func (v *verifier) bad(leaf int64, seq uint64, code, detail string) {
	v.order = append(v.order, unbelievedEvent{leaf, seq, code, detail})
}

// judgeEvents writes down what visit found, once every report of the auditor is known.
func (v *verifier) judgeEvents() {
	for _, u := range v.order {
		v.report.Unbelieved++
		reported := "reported by the auditor"
		if !v.said[unsaid{Seq: u.seq, Code: u.code}.key()] {
			v.report.Unreported++
			reported = "not reported by the auditor"
		}
		v.authenticity.Add(fmt.Sprintf("sequence %d (leaf %d): %s: %s (%s)", u.seq, u.leaf, u.code, u.detail, reported))
		v.firstBad(u.leaf)
	}
	if v.book.Current() == nil {
		v.authenticity.Add("the log holds no trust file that the root key has signed")
	}
}

func (v *verifier) firstBad(leaf int64) {
	if v.report.FirstBadLeaf == nil || leaf < *v.report.FirstBadLeaf {
		v.report.FirstBadLeaf = &leaf
	}
}

// judgeLog sorts what the log's own check found.
func (v *verifier) judgeLog(r *tlog.Report) {
	for _, p := range r.Problems {
		switch p.What {
		case tlog.SeqHole:
			v.completeness.Add(p.String())
		case tlog.Torn, tlog.HashesMismatch, tlog.OffsetsMismatch, tlog.JobsMismatch:
			v.report.Notes = append(v.report.Notes, p.String())
		default:
			v.integrity.Add(p.String())
		}
	}
	if p, found := r.FirstBad(); found {
		v.firstBad(p.Leaf)
	}
	if _, ok := site.EpochOf(r.Origin, v.options.Origin); !ok {
		v.integrity.Add(fmt.Sprintf("the log is of %q, expected %q", r.Origin, site.CheckpointOrigin(v.options.Origin)))
	}
	v.judgeFaults()
}

// judgeSigner checks the checkpoint's signature against the trust file in force at the
// head, which only the log itself tells.
func (v *verifier) judgeSigner() {
	if v.head() == 0 {
		return // tlog has said why
	}
	if v.sealedTrust == nil {
		v.integrity.Add("no trust file is in force at the head, so nobody may sign it")
		return
	}
	if err := v.signers.signedBy(v.sealedTrust.CheckpointKeys); err != nil {
		v.integrity.Add(err.Error())
	}
}

// readHeadFile reads the head that is kept elsewhere, before the log is read, so that a
// live auditor can only be ahead of it.
func (v *verifier) readHeadFile() (text []byte, err error) {
	if v.options.HeadFile == "" {
		return nil, nil
	}
	b, err := os.ReadFile(v.options.HeadFile)
	if errors.Is(err, fs.ErrNotExist) {
		v.integrity.Add(fmt.Sprintf("the head file %s is missing", v.options.HeadFile))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if text, err = tlog.ReadLockFile(b); err != nil {
		v.integrity.Add(fmt.Sprintf("the head file %s: %v", v.options.HeadFile, err))
	}
	return text, nil
}

// judgeHeadFile compares the head file with the log.
func (v *verifier) judgeHeadFile(text []byte, r *tlog.Report) {
	if text == nil {
		return
	}
	name := filepath.Base(v.options.HeadFile)
	origin, size, root, err := tlog.ParseHead(text)
	switch {
	case err != nil:
		v.integrity.Add(fmt.Sprintf("head file %s: %v", name, err))
		return
	case origin != r.Origin:
		v.integrity.Add(fmt.Sprintf("head file %s is of %q, the log of %q", name, origin, r.Origin))
		return
	case size > r.Size:
		v.integrity.Add(fmt.Sprintf("rollback: head file %s covers %d leaves, the log holds %d", name, size, r.Size))
		return
	case size < v.head() && !r.Live:
		v.integrity.Add(fmt.Sprintf("head file %s covers %d leaves, the checkpoint %d: one of them was put back", name, size, v.head()))
		return
	case size > v.head() && !r.Live:
		v.integrity.Add(fmt.Sprintf("the checkpoint covers %d leaves, head file %s %d; start the auditor, which signs it again", v.head(), name, size))
	}
	if got, err := rootAt(v.options.LogDir, size); err != nil {
		v.integrity.Add(fmt.Sprintf("the root of %d leaves cannot be read: %v", size, err))
	} else if got != root && !(size == v.head() && root == v.signers.root) {
		v.integrity.Add(fmt.Sprintf("fork: head file %s names another root of %d leaves than the log has", name, size))
	}
}

func rootAt(dir string, size int64) (tlog.Hash, error) {
	r, err := tlog.OpenReader(dir)
	if err != nil {
		return tlog.Hash{}, err
	}
	defer r.Close()
	return r.TreeHash(size)
}

// judgeTail decides about what lies beyond the head. The auditor's own events wait
// there for the next seal; anything else is not covered by any signature, except that
// a live auditor is given the time to seal what it has just taken in.
func (v *verifier) judgeTail(ctx context.Context, live bool) {
	if v.tail == 0 {
		return
	}
	if live {
		awaitSeal(ctx, v.options.LogDir, v.tailSeq)
		if v.sealedSince() {
			v.report.Notes = append(v.report.Notes, fmt.Sprintf("%d event(s) up to sequence %d were sealed while this ran", v.tail, v.tailSeq))
			return
		}
	}
	v.completeness.Add(fmt.Sprintf("%d event(s) up to sequence %d lie beyond the signed head", v.tail, v.tailSeq))
}

// sealedSince says whether the checkpoint that is there now covers the tail and is
// signed by who may. Its root is the next verification's matter.
func (v *verifier) sealedSince() bool {
	if v.sealedTrust == nil || sealedThrough(v.options.LogDir) < v.tailSeq {
		return false
	}
	var keys []note.Verifier
	for _, text := range v.sealedTrust.CheckpointKeys {
		if key, err := note.NewVerifier(text); err == nil {
			keys = append(keys, key)
		}
	}
	b, err := os.ReadFile(filepath.Join(v.options.LogDir, "checkpoint"))
	if err == nil {
		_, _, err = tlog.OpenCheckpoint(b, note.VerifierList(keys...))
	}
	return err == nil
}

// freshness decides how much the head may have missed.
func (v *verifier) freshness(target uint64, busErr error) Verdict {
	since, what := v.headTime, "the last sealed event"
	if !v.witnessedAt.IsZero() {
		since, what = v.witnessedAt, "the quorum of cosignatures"
	}
	switch {
	case v.unwitnessed != nil:
		return Verdict{Reason: v.unwitnessed.Error()}
	case v.head() == 0 || v.headTime.IsZero():
		return Verdict{Reason: unknownFreshness + "there is no signed head over any event"}
	case v.options.Bus != nil && busErr != nil:
		return Verdict{Reason: unknownFreshness + "the bus did not say what it holds: " + busErr.Error()}
	case v.options.Bus != nil && v.report.ThroughSeq < target:
		return Verdict{Reason: fmt.Sprintf("the head covers sequence %d, the bus holds event %d", v.report.ThroughSeq, target)}
	case v.options.Bus != nil:
		return Verdict{OK: true, Reason: fmt.Sprintf("the head covers the last event of the bus, %d", target)}
	}
	age := v.options.Now().Sub(since).Round(time.Second)
	if age > v.options.MaxAge {
		return Verdict{Reason: fmt.Sprintf("%s%s is of %s, %s ago, more than %s; ask the bus to be sure", unknownFreshness, what,
			since.UTC().Format(time.RFC3339), age, v.options.MaxAge)}
	}
	return Verdict{OK: true, Reason: fmt.Sprintf("%s is %s old, less than %s", what, age, v.options.MaxAge)}
}

func (v *verifier) finish(r *tlog.Report) {
	v.report.Integrity = v.integrity.Verdict("entries, records, root, signature and head agree")
	v.report.Authenticity = v.authenticity.Verdict("every event is signed by whom the trust file in force lets publish it")
	v.report.Completeness = v.completeness.Verdict(v.complete())
	v.report.Origin, v.report.Size, v.report.Unsealed = r.Origin, v.head(), r.Unsealed
	v.report.Root = base64.StdEncoding.EncodeToString(v.signers.root[:])
	if !v.headTime.IsZero() {
		v.report.HeadTime = v.headTime.UTC().Format(time.RFC3339Nano)
	}
}
