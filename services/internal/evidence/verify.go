package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
)

// Options say what to verify and what to believe.
type Options struct {
	Dir     string         // folder of the bundle
	Origin  string         // the site's name
	RootKey keys.PublicKey // pinned; trust files are believed if it signed them
	MaxAge  time.Duration  // how old the head may be; 0 is 24 hours
	// TSARoots may vouch for the authority that stamped the head, nil for nobody.
	TSARoots *x509.CertPool
	Now      func() time.Time
}

const defaultMaxAge = 24 * time.Hour

// Bounds on what a bundle of a stranger may make the reader hold.
const (
	maxFiles      = 1 << 16
	maxFile_bytes = 64 << 20
	maxRest_bytes = 1 << 30
)

// Verify checks a bundle. What is wrong with it is in the Report; an error means that
// there is nothing to check or that it cannot be read.
func Verify(ctx context.Context, o Options) (Report, error) {
	if _, err := o.RootKey.Bytes(); err != nil {
		return Report{}, fmt.Errorf("verify bundle %s: root key: %w", o.Dir, err)
	}
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	folder, err := os.OpenRoot(o.Dir)
	if err != nil {
		return Report{}, fmt.Errorf("verify bundle: %w", err)
	}
	defer folder.Close()
	v := &verifier{options: o, folder: folder, book: trust.New(o.Origin, o.RootKey), leaves: map[int64]*leaf{},
		files: map[string]bool{}, named: map[string]named{}, erased: map[string]int64{}, orders: map[string]int64{}}
	if err := v.list(); err != nil {
		return Report{}, fmt.Errorf("verify bundle %s: %w", o.Dir, err)
	}
	v.readHead()
	for _, n := range slices.Sorted(maps.Keys(v.leaves)) {
		if ctx.Err() != nil {
			return Report{}, ctx.Err()
		}
		v.leaf(n)
	}
	v.judgeJob()
	v.judgeRest()
	v.judgeTexts()
	v.judgeStamp()
	v.judgeSigner()
	return v.finish(), nil
}

// leaf is what the folder holds about one leaf of the log.
type leaf struct {
	has   map[string]bool
	entry tlog.Entry
	raw   []byte
	read  bool // the entry was read and parsed
}

// verifier is one run of Verify.
type verifier struct {
	options Options
	folder  *os.Root
	book    *trust.Book
	report  Report

	integrity, authenticity, completeness Reasons

	job      string
	head     tlog.Checkpoint
	hasRest  bool
	stamped  bool
	leaves   map[int64]*leaf
	ofJob    []int64
	headTime time.Time

	// States: those of the bundle, the newest after the job's last event, and where the
	// newest event of the job lies as the bundle's state says.
	states              []int64
	newestState, listed int64

	// Texts by their digests.
	files  map[string]bool  // that are in the folder
	named  map[string]named // that events of the job name
	orders map[string]int64 // that the leaf orders to be erased
	erased map[string]int64 // the same, where the order is believed
}

// list sorts the files of the folder. A file that nothing covers could say anything to
// a person who looks at the folder, so it fails integrity.
func (v *verifier) list() error {
	dir, err := v.folder.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(entries) > maxFiles {
		return fmt.Errorf("it holds more than %d files", maxFiles)
	}
	known := false
	for _, e := range entries {
		n, kind, ok := leafOf(e.Name())
		digest, isText := digestOf(e.Name())
		switch {
		case !e.Type().IsRegular():
			v.integrity.Add(fmt.Sprintf("%q is not a file", e.Name()))
		case ok:
			if v.leaves[n] == nil {
				v.leaves[n] = &leaf{has: map[string]bool{}}
			}
			v.leaves[n].has[kind] = true
		case isText:
			v.files[digest] = true
		case e.Name() == stampFile:
			v.stamped = true
		case e.Name() == laterFile:
			v.hasRest = true
		case e.Name() == checkpointFile:
			known = true
		case e.Name() != jobFile:
			v.integrity.Add(fmt.Sprintf("%q: no proof covers such a file", e.Name()))
		}
	}
	if !known {
		return errors.New("it holds no checkpoint; is it a bundle?")
	}
	return nil
}

// file reads one file whole.
func (v *verifier) file(name string, limit int64) ([]byte, error) {
	f, err := v.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return b, err
}

// readHead reads the checkpoint and which job this is about. Who signed the head is
// judged at the end, when the trust files are known.
func (v *verifier) readHead() {
	b, err := v.file(checkpointFile, 1<<20)
	if err != nil {
		v.integrity.Add(err.Error())
		return
	}
	origin, cp, err := tlog.ParseCheckpoint(b)
	if err != nil {
		v.integrity.Add(err.Error())
		return
	}
	v.head, v.report.Origin = cp, origin
	if _, ok := site.EpochOf(origin, v.options.Origin); !ok {
		v.integrity.Add(fmt.Sprintf("the checkpoint is of %q, expected %q", origin, site.CheckpointOrigin(v.options.Origin)))
	}
	if b, err = v.file(jobFile, 1<<10); err != nil {
		v.integrity.Add(err.Error())
	} else if id, ok := bytes.CutSuffix(b, []byte("\n")); !ok || !plainID(string(id)) {
		v.integrity.Add("the job file does not hold an id")
	} else {
		v.job = string(id)
	}
}

// leaf checks one event.
func (v *verifier) leaf(n int64) {
	l := v.leaves[n]
	if !l.has["entry"] && len(l.has) == 1 && l.has["tlog-proof"] && n == v.head.Size-1 && v.hasRest {
		return // the proof of the last entry of the tree, for judgeRest
	}
	if err := v.readEntry(n, l); err != nil {
		v.integrity.Add(fmt.Sprintf("leaf %d: %v", n, err))
		v.firstBad(n)
		return
	}
	l.read = true
	if state := l.entry.Kind == tlog.KindState; state || l.has["directory"] {
		err := errors.New("only a state has a directory")
		if state {
			err = v.state(n, l)
		}
		if err != nil {
			v.integrity.Add(fmt.Sprintf("leaf %d: %v", n, err))
			v.firstBad(n)
		}
		return
	}
	v.headTime = l.entry.Time
	digest, ofText := erasedBy(l.entry.Subject)
	switch {
	case l.entry.Kind != tlog.KindEvent || l.entry.Job != v.job && !isTrust(l.entry.Subject) && !ofText:
		v.integrity.Add(fmt.Sprintf("leaf %d is neither an event of job %s nor a trust file nor an order to erase", n, v.job))
		v.firstBad(n)
		return
	case l.entry.Job == v.job:
		v.ofJob = append(v.ofJob, n)
	}
	st, whole, err := v.readRecord(n, l)
	if err != nil {
		v.integrity.Add(fmt.Sprintf("leaf %d: %v", n, err))
		v.firstBad(n)
		return
	}
	if !whole {
		v.report.Withheld = append(v.report.Withheld, n)
		err = v.judgeBare(&l.entry)
	} else {
		err = v.judge(n, &l.entry, st)
	}
	if ofText {
		v.erasure(n, digest, err)
	}
	if err != nil {
		v.authenticity.Add(fmt.Sprintf("sequence %d (leaf %d): %v", l.entry.Seq, n, err))
		v.firstBad(n)
	}
}

// readEntry reads an entry and checks that it is under the head.
func (v *verifier) readEntry(n int64, l *leaf) (err error) {
	if l.raw, err = v.file(fmt.Sprintf("%d.entry", n), maxFile_bytes); err != nil {
		return err
	}
	if l.entry, err = tlog.ParseEntry(l.raw); err != nil {
		return err
	}
	return v.included(n, l.raw)
}

func (v *verifier) included(n int64, entry []byte) error {
	b, err := v.file(fmt.Sprintf("%d.tlog-proof", n), 1<<20)
	if err != nil {
		return err
	}
	p, err := ParseProof(b)
	if err != nil {
		return err
	}
	if p.Index != n {
		return fmt.Errorf("its proof is of leaf %d", p.Index)
	}
	return p.Check(entry, v.head)
}

// readRecord reads headers and payload and compares them with the entry; whole is
// false if one of them is withheld.
func (v *verifier) readRecord(n int64, l *leaf) (st events.Stored, whole bool, err error) {
	st = events.Stored{Seq: l.entry.Seq, Time: l.entry.Time, Subject: l.entry.Subject}
	whole = true
	block, err := v.file(fmt.Sprintf("%d.headers", n), maxFile_bytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		whole = l.entry.Headers == tlog.Hash{}
	case err != nil:
		return st, false, err
	case len(block) == 0 || sha256.Sum256(block) != l.entry.Headers:
		return st, false, errors.New("the headers have another digest than the entry says")
	}
	if st.Header, err = tlog.ParseHeaderBlock(block); err != nil {
		return st, false, err
	}
	st.Data, err = v.file(fmt.Sprintf("%d.payload", n), maxFile_bytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return st, false, nil
	case err != nil:
		return st, false, err
	case int64(len(st.Data)) != l.entry.Payload_bytes || sha256.Sum256(st.Data) != l.entry.Payload:
		return st, false, errors.New("the payload has another digest than the entry says")
	}
	return st, whole, nil
}

func (v *verifier) firstBad(n int64) {
	if v.report.FirstBadLeaf == nil || n < *v.report.FirstBadLeaf {
		v.report.FirstBadLeaf = &n
	}
}

// judgeSigner checks the head's signature against the newest trust file.
func (v *verifier) judgeSigner() {
	file := v.book.Current()
	if file == nil {
		v.integrity.Add("the bundle holds no trust file that the root key has signed, so nobody may sign its head")
		v.authenticity.Add("the bundle holds no trust file that the root key has signed")
		return
	}
	if v.head.Size == 0 {
		return
	}
	var signers []note.Verifier
	for _, text := range file.CheckpointKeys {
		if key, err := note.NewVerifier(text); err == nil {
			signers = append(signers, key)
		}
	}
	if _, _, err := tlog.OpenCheckpoint(v.head.Note, note.VerifierList(signers...)); err != nil {
		v.integrity.Add(fmt.Sprintf("the checkpoint is not signed by a key of the newest trust file: %v", err))
	}
}

func (v *verifier) finish() Report {
	r := &v.report
	r.Integrity = v.integrity.Verdict("every file is what the signed head covers")
	r.Authenticity = v.authenticity.Verdict("every event is signed by whom the trust file lets publish it")
	r.Completeness = v.completeness.Verdict(fmt.Sprintf("these are all events of the job among %d entries", v.head.Size))
	r.Job, r.Size, r.Events = v.job, v.head.Size, len(v.ofJob)
	r.Root = base64.StdEncoding.EncodeToString(v.head.Root[:])
	if v.headTime.IsZero() {
		r.Freshness = Verdict{Reason: UnknownFreshness + "no event tells the age of the head"}
		return *r
	}
	r.HeadTime = v.headTime.UTC().Format(time.RFC3339Nano)
	age := v.options.Now().Sub(v.headTime).Round(time.Second)
	if age > v.options.MaxAge {
		r.Freshness = Verdict{Reason: fmt.Sprintf("%sthe last event under the head is %s old, more than %s", UnknownFreshness, age, v.options.MaxAge)}
	} else {
		r.Freshness = Verdict{OK: true, Reason: fmt.Sprintf("the last event under the head is %s old, less than %s", age, v.options.MaxAge)}
	}
	return *r
}
