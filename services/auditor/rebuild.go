package auditor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
)

// RebuildOptions say from what to make the log and the index again.
type RebuildOptions struct {
	Layout  site.Layout
	Origin  string
	RootKey keys.PublicKey
	Own     keys.PublicKey // the auditor's signing key
	Stream  Stream
	Dir     string // new folder for what is made
	// Running says that an auditor works on the site's log; its index is not looked at.
	Running bool
	// Replace puts the index, and a log that is damaged or lost, in the place of those
	// of the site. No auditor may run.
	Replace bool
	// Elsewhere says that the auditor compares the log with a head that lies elsewhere as
	// well, so that a log may be put in place although the file of its head was lost with it.
	Elsewhere bool
}

// Rebuilt is what [Rebuild] found.
type Rebuilt struct {
	Epoch      int    `json:"epoch"`
	Dir        string `json:"dir"`
	Size       int64  `json:"size"` // leaves that the stream leads to
	ThroughSeq uint64 `json:"through_seq"`

	// Log is "same" when every sealed leaf of the site's log is the one that was made
	// again, byte for byte, and "differs", "unreadable" or "missing" otherwise.
	Log    string `json:"log"`
	Sealed int64  `json:"sealed"`          // leaves of the site's log that were compared
	Root   string `json:"root,omitempty"`  // of as many leaves that were made again, base64
	First  *int64 `json:"first,omitempty"` // first leaf that differs
	// Index is "same", "differs", "missing", or "in use" when a running auditor has it.
	Index  string `json:"index"`
	Detail string `json:"detail,omitempty"`

	ReplacedLog   string `json:"replaced_log,omitempty"` // where the old one lies now
	ReplacedIndex bool   `json:"replaced_index,omitzero"`
}

// Same says whether everything that could be compared was the same.
func (r *Rebuilt) Same() bool {
	return r.Log == sameAgain && (r.Index == sameAgain || r.Index == inUse)
}

// What a comparison says.
const (
	sameAgain  = "same"
	differs    = "differs"
	unreadable = "unreadable"
	missing    = "missing"
	inUse      = "in use"
)

// Rebuild makes the log of this epoch again from the stream, and the index from the
// logs, into a fresh folder, and compares both with what the site has. It needs no key:
// the log is a function of the stream, and its head is signed by whoever opens it.
func Rebuild(ctx context.Context, o RebuildOptions) (Rebuilt, error) {
	r := &rebuild{o: o, out: Rebuilt{Epoch: o.Layout.Epoch(), Dir: o.Dir, Index: missing}}
	if _, err := os.Stat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
		return r.out, fmt.Errorf("rebuild into %s: there must be no such folder yet (%v)", o.Dir, err)
	}
	if o.Replace && o.Running {
		return r.out, errors.New("rebuild: an auditor is running; stop it, and run the bus alone with 'banksman bus'")
	}
	defer r.close()
	for _, step := range []func(context.Context) error{r.makeLog, r.compareLog, r.makeIndex, r.replace} {
		if err := step(ctx); err != nil {
			return r.out, fmt.Errorf("rebuild: %w", err)
		}
	}
	return r.out, nil
}

// rebuild is one run of Rebuild.
type rebuild struct {
	o   RebuildOptions
	out Rebuilt
	a   *auditor // that works on what is made
	old *tlog.Reader
}

func (r *rebuild) logDir() string   { return filepath.Join(r.o.Dir, "log") }
func (r *rebuild) indexDir() string { return filepath.Join(r.o.Dir, "index.db") }

func (r *rebuild) close() {
	if r.old != nil {
		_ = r.old.Close() // it was only read
	}
	if r.a != nil {
		r.a.close()
	}
}

// makeLog writes the log of what the stream holds now.
func (r *rebuild) makeLog(ctx context.Context) error {
	target, err := r.o.Stream.LastSeq(ctx)
	if err != nil {
		return err
	}
	g, err := r.genesis(ctx)
	if err != nil {
		return err
	}
	head := filepath.Join(r.o.Dir, "head")
	for _, dir := range []string{r.o.Dir, head} {
		if err := keys.MakePrivateDir(dir); err != nil {
			return err
		}
	}
	key, err := keys.GenerateCheckpointKey(g.Origin)
	if err != nil {
		return err
	}
	r.a = &auditor{
		config: &Config{}, slog: slog.New(slog.DiscardHandler), stream: r.o.Stream, layout: r.o.Layout, epoch: r.out.Epoch,
		ledger: newLedger(trust.New(r.o.Origin, r.o.RootKey), nil, r.o.Own),
	}
	r.a.log, err = tlog.Continue(r.logDir(), g, r.carried(ctx, g.Old.Through), key.Signer(), tlog.FileLock(head))
	if err != nil {
		return err
	}
	for next := g.Old.Through + 1; next <= target; {
		page, err := r.o.Stream.Read(ctx, next, everything, tailPage)
		if err != nil {
			return err
		}
		for _, st := range page {
			if err := r.append(st, next); err != nil {
				return err
			}
			next = st.Seq + 1
		}
		if len(page) == 0 {
			break
		}
	}
	if _, err := r.a.log.Seal(); err != nil {
		return err
	}
	r.out.Size, r.out.ThroughSeq = r.a.log.Size(), r.a.log.LastSeq()
	r.a.reader, err = tlog.OpenReader(r.logDir())
	return err
}

// append adds one message, behind the gap before it.
func (r *rebuild) append(st events.Stored, next uint64) error {
	if st.Seq > next {
		if _, err := r.a.log.AppendGap(next, st.Seq-1); err != nil {
			return err
		}
	}
	_, err := r.a.log.Append(recordOf(st), metaOf(st))
	return err
}

// carried is what the epoch took over from those before. A stream that was not thinned
// yet holds more.
func (r *rebuild) carried(ctx context.Context, through uint64) tlog.Carry {
	return func(add func(tlog.Record, tlog.Meta) error) error {
		if through == 0 {
			return nil
		}
		goesAlong, err := r.rule(ctx, through+1)
		if err != nil {
			return err
		}
		for next := uint64(1); next <= through; {
			page, err := r.o.Stream.Read(ctx, next, everything, tailPage)
			if err != nil {
				return err
			}
			for _, st := range page {
				if next = st.Seq + 1; st.Seq > through {
					break
				}
				if !goesAlong(st.Seq, st.Subject) {
					continue
				}
				if err := add(recordOf(st), metaOf(st)); err != nil {
					return err
				}
			}
			if len(page) == 0 {
				break
			}
		}
		return nil
	}
}

// rule is what the event that opens the epoch says about what goes along.
func (r *rebuild) rule(ctx context.Context, seq uint64) (func(seq uint64, subject string) bool, error) {
	page, err := r.o.Stream.Read(ctx, seq, everything, 1)
	if err != nil {
		return nil, err
	}
	if len(page) == 1 && page[0].Seq == seq {
		if e, err := events.Open(r.o.Origin, page[0]); err == nil {
			if p, ok := e.Payload.(*events.EpochOpened); ok {
				return p.Carries(), nil
			}
		}
	}
	return nil, fmt.Errorf("the stream does not hold event %d any more, which opens the epoch; restore a backup", seq)
}

// genesis is the first leaf of the site's log, or what the stream's first event makes of
// it where there is no log to read it from.
func (r *rebuild) genesis(ctx context.Context) (g tlog.Genesis, err error) {
	if r.old, err = tlog.OpenReader(r.o.Layout.AuditLogOf(r.out.Epoch)); err == nil {
		if g, err = r.old.Genesis(); err == nil {
			return g, nil
		}
	}
	if r.out.Epoch > events.FirstEpoch {
		return g, fmt.Errorf("the log of epoch %d has lost its first leaf, which names the epoch before; restore a backup: %w", r.out.Epoch, err)
	}
	first, err := firstEvent(ctx, r.o.Stream)
	return tlog.Genesis{
		Origin: site.CheckpointOriginOf(r.o.Origin, r.out.Epoch), Stream: streamName, Created: first.Time, Config: sha256.Sum256(first.Data),
	}, err
}

// compareLog compares every leaf under the site's signed head.
func (r *rebuild) compareLog(context.Context) error {
	if r.old == nil {
		r.out.Log = missing
		return nil
	}
	head, err := r.old.Checkpoint()
	if err != nil {
		r.out.Log, r.out.Detail = unreadable, err.Error()
		return nil
	}
	r.out.Sealed, r.out.Log = head.Size, sameAgain
	for leaf := range head.Size {
		_, was, err := r.old.Entry(leaf)
		if err != nil {
			r.out.Log, r.out.Detail, r.out.First = unreadable, err.Error(), &leaf
			return nil
		}
		_, is, err := r.a.reader.Entry(leaf)
		if errors.Is(err, tlog.ErrRange) {
			r.out.Detail = "the stream does not lead that far"
		} else if err != nil {
			return err
		}
		if !bytes.Equal(was, is) {
			r.out.Log, r.out.First = differs, &leaf
			return nil
		}
	}
	root, err := r.a.reader.TreeHash(head.Size)
	if err != nil {
		return err
	}
	r.out.Root = base64.StdEncoding.EncodeToString(root[:])
	if root != head.Root {
		r.out.Log, r.out.Detail = differs, "the leaves are the same, the signed root is another one"
	}
	return nil
}

// makeIndex makes the index again, up to where the site's own stands, and compares.
func (r *rebuild) makeIndex(ctx context.Context) error {
	at, want, err := r.kept()
	if err != nil {
		return err
	}
	leaves := r.a.log.Size()
	if at.Epoch == r.out.Epoch && at.Leaves > 0 && at.Leaves <= leaves {
		leaves = at.Leaves
	}
	if r.a.index, err = index.Open(r.indexDir()); err != nil {
		return err
	}
	r.a.ledger.index = r.a.index
	if err := r.a.resumeTo(ctx, leaves, leaves); err != nil {
		return err
	}
	sum, err := r.a.index.Sum()
	if err == nil && r.out.Index == differs && sum == want {
		r.out.Index = sameAgain
	}
	return err
}

// kept looks at a copy of the site's index, since who opens one that is in doubt begins
// it anew.
func (r *rebuild) kept() (at index.Position, sum [sha256.Size]byte, err error) {
	if r.o.Running {
		r.out.Index = inUse
		return at, sum, nil
	}
	path := filepath.Join(r.o.Dir, "kept.db")
	for _, end := range []string{"", ".boot"} {
		b, err := os.ReadFile(r.o.Layout.AuditIndex() + end)
		if errors.Is(err, fs.ErrNotExist) {
			return at, sum, nil
		}
		if err == nil {
			err = os.WriteFile(path+end, b, 0o600)
		}
		if err != nil {
			return at, sum, err
		}
	}
	x, err := index.Open(path)
	if err != nil {
		return at, sum, err
	}
	r.out.Index = differs
	if r.out.Detail = x.Anew(); r.out.Detail == "" {
		at, err = x.Position()
	}
	if err == nil {
		sum, err = x.Sum()
	}
	if errors.Is(err, index.ErrDamaged) {
		r.out.Detail, at, err = err.Error(), index.Position{}, nil
	}
	return at, sum, errors.Join(err, x.Close(), os.Remove(path), os.Remove(path+".boot"))
}

// replace puts what was made in the place of what the site has. The log's head is signed
// again by the auditor, which compares it with the head that is kept elsewhere.
func (r *rebuild) replace(context.Context) error {
	if !r.o.Replace {
		return nil
	}
	r.a.close()
	r.a.log, r.a.reader, r.a.index = nil, nil, nil
	if r.out.Log != sameAgain {
		if err := r.replaceLog(); err != nil {
			return err
		}
	}
	to := r.o.Layout.AuditIndex()
	if err := os.Rename(r.indexDir(), to); err != nil {
		return err
	}
	r.out.ReplacedIndex = true
	return os.Rename(r.indexDir()+".boot", to+".boot")
}

// replaceLog puts the log in place if it is one that grew out of the head that is kept
// elsewhere. The old one stays beside it.
func (r *rebuild) replaceLog() error {
	text, err := os.ReadFile(r.o.Layout.AuditHeadOf(r.out.Epoch))
	if r.o.Elsewhere && errors.Is(err, fs.ErrNotExist) {
		return r.moveLog()
	}
	if err != nil {
		return fmt.Errorf("the log is not replaced, because the head that is kept elsewhere cannot be read: %w", err)
	}
	var size int64
	var root tlog.Hash
	if text, err = tlog.ReadLockFile(text); err == nil {
		_, size, root, err = tlog.ParseHead(text)
	}
	if err != nil {
		return fmt.Errorf("the log is not replaced: %w", err)
	}
	made, err := rootAt(r.logDir(), size)
	if err != nil || made != root {
		return fmt.Errorf("the log is not replaced, because the stream does not lead to the %d leaves that were sealed; restore a backup", size)
	}
	return r.moveLog()
}

// moveLog puts the log in place.
func (r *rebuild) moveLog() error {
	to := r.o.Layout.AuditLogOf(r.out.Epoch)
	aside := to + ".replaced-" + time.Now().UTC().Format("20060102T150405Z")
	if err := os.Rename(to, aside); err == nil {
		r.out.ReplacedLog = aside
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.Join(r.logDir(), "checkpoint")); err != nil { // nobody trusts its key
		return err
	}
	return os.Rename(r.logDir(), to)
}
