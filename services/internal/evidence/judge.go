package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/tlog"
)

// judge checks an event that the bundle holds whole.
func (v *verifier) judge(n int64, e *tlog.Entry, st events.Stored) error {
	if !Names(*e, MetaOf(st)) {
		return errors.New("entry_meta: the entry names another id, job, actor or signature than the message")
	}
	event, err := v.book.Open(st)
	var unknown *events.UnknownKind
	if errors.As(err, &unknown) {
		return nil // believable, of a newer version
	}
	for _, t := range events.TextsOf(event.Payload) {
		if _, known := v.named[t.Digest]; !known {
			v.named[t.Digest] = named{n, t}
		}
	}
	return err
}

// judgeBare checks an event of which only the entry is there. The entry holds all that
// was signed; what only the payload says, such as the basis of a decision, stays open.
func (v *verifier) judgeBare(e *tlog.Entry) error {
	subject, err := events.ParseSubject(e.Subject)
	if err != nil {
		return fmt.Errorf("malformed: %w", err)
	}
	file := v.book.Current()
	if file == nil {
		return errors.New("no_trust: no trust file was in force")
	}
	if subject.Kind() == "trust.published" {
		return errors.New("withheld: a trust file judges others and must be whole")
	}
	actor, ok := file.Find(subject.Actor)
	if !ok {
		return fmt.Errorf("unknown_actor: actor %q is not in trust file %d", subject.Actor, file.Version)
	}
	if !actor.Believes(e.Actor) {
		return fmt.Errorf("wrong_key: signed with %s, the actor's key is %s", e.Actor, actor.Sign)
	}
	expect, err := strconv.ParseUint(e.Expect, 10, 64)
	if err != nil {
		return errors.New("malformed: the entry names no expected sequence")
	}
	sig, err := events.ParseSignature(e.Actor + " " + e.Sig)
	if err != nil {
		return err
	}
	text := events.SigningText(v.options.Origin, e.Subject, e.Meta, expect, e.Payload, int(e.Payload_bytes))
	switch {
	case !keys.PublicKey(e.Actor).Verify(text, sig.Sig):
		return fmt.Errorf("bad_signature: the signature of %q does not verify", actor.Actor)
	case !actor.MayPublish(subject.Kind()):
		return fmt.Errorf("no_right: %q with roles %v may not publish %s", actor.Actor, actor.Roles, subject.Kind())
	case len(actor.Pools) > 0 && e.Job != "" && !slices.Contains(actor.Pools, subject.Scope):
		return fmt.Errorf("wrong_pool: %q belongs to pools %v, not %q", actor.Actor, actor.Pools, subject.Scope)
	}
	return nil
}

// judgeJob checks the links between the job's events, back to the first.
func (v *verifier) judgeJob() {
	if len(v.ofJob) == 0 {
		v.completeness.Add("the bundle holds no event of the job")
		return
	}
	before, seq := int64(-1), uint64(0)
	for _, n := range v.ofJob {
		e := &v.leaves[n].entry
		if e.JobPrev != before {
			v.completeness.Add(fmt.Sprintf("hole: leaf %d says that leaf %d is the job's event before it, the bundle holds %d", n, e.JobPrev, before))
		} else if e.Expect != strconv.FormatUint(seq, 10) {
			v.authenticity.Add(fmt.Sprintf("sequence %d (leaf %d): wrong_position: signed for the place after %s, the job's last was %d", e.Seq, n, e.Expect, seq))
			v.firstBad(n)
		}
		before, seq = n, e.Seq
	}
}

// judgeRest checks that nothing of the job came after its last event: the entries from
// there to the end of the tree are chained, and none of them is the job's.
func (v *verifier) judgeRest() {
	if len(v.ofJob) == 0 || v.head.Size == 0 {
		return
	}
	last := v.ofJob[len(v.ofJob)-1]
	defer v.judgeStates(last)
	if last == v.head.Size-1 {
		if v.hasRest {
			v.integrity.Add(laterFile + ": nothing comes later, so no proof covers it")
		}
		return
	}
	rest, err := v.file(laterFile, maxRest_bytes)
	if err != nil {
		v.completeness.Add(fmt.Sprintf("nothing shows that leaf %d of %d is the job's last event: %v", last, v.head.Size, err))
		return
	}
	if err := v.walkRest(last, rest); err != nil {
		v.completeness.Add(fmt.Sprintf("%s: %v", laterFile, err))
	}
}

// entryStart begins every entry and no other line of one.
var entryStart = []byte("\nbanksman-entry/v1 ")

func (v *verifier) walkRest(last int64, rest []byte) error {
	prev, n := sha256.Sum256(v.leaves[last].raw), last
	var raw []byte
	for len(rest) > 0 {
		raw = rest
		if end := bytes.Index(rest, entryStart); end >= 0 {
			raw = rest[:end+1]
		}
		rest = rest[len(raw):]
		n++
		e, err := tlog.ParseEntry(raw)
		switch {
		case err != nil:
			return fmt.Errorf("leaf %d: %w", n, err)
		case e.Prev != prev:
			return fmt.Errorf("leaf %d does not name the entry before it", n)
		case e.Kind == tlog.KindEvent && e.Job == v.job:
			return fmt.Errorf("leaf %d is an event of the job, and the bundle leaves it out", n)
		case e.Kind == tlog.KindEvent && isTrust(e.Subject) && (v.leaves[n] == nil || !v.leaves[n].read):
			return fmt.Errorf("leaf %d is a trust file, and the bundle leaves it out", n)
		}
		if e.Kind == tlog.KindState {
			v.newestState = n
		}
		if e.Kind == tlog.KindEvent {
			v.headTime = e.Time
		}
		prev = sha256.Sum256(raw)
	}
	if n != v.head.Size-1 {
		return fmt.Errorf("it ends with leaf %d, the tree with %d", n, v.head.Size-1)
	}
	return v.included(n, raw)
}
