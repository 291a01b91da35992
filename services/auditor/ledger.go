package auditor

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/trust"
)

// Keys of the facts that the ledger keeps beside the jobs. Numbers are fixed width,
// so that keys sort as the numbers do.
const (
	factSession = "s/" // + actor/session: last counter
	factTrust   = "t/" // + seq: leaf of a trust file
	factFound   = "v/" // + seq/code: a violation was found
	factUnsaid  = "u/" // + seq/code: what is still to be published about it
	factOpenGap = "d/" // + seq: a gap that nobody has acknowledged
	factFault   = "f/" // + seq: an audit.fault_found that nobody has acknowledged
	factLost    = "l/" // + seq: first of sequences that were lost after they were read: the last
	factProject = "p/" // + project: its fold
	factGrant   = "g/" // + id: its fold
	factCount   = "c/" // + violations, gaps, missing: how many there are
	factErased  = "x/" // + digest: a text that is to be erased
	factAudit   = "a/last"
	factRequest = "e/request" // sequence of the request to close this epoch
	factEnded   = "e/ended"   // jobs that ended in this epoch
	factDropped = "e/dropped" // messages that the bus may have let go of
)

// What is counted.
const (
	countViolations = "violations"
	countGaps       = "gaps"
	countMissing    = "missing" // sequences in gaps
	countAcks       = "acks"    // acknowledgements
)

// codeGap stands for a gap where others name a violation.
const codeGap = events.FaultGap

// unsaid is something that an audit event must say.
type unsaid struct {
	Seq    uint64 `json:"seq"`
	To     uint64 `json:"to,omitzero"` // of a gap
	Code   string `json:"code"`
	Job    string `json:"job,omitempty"`
	Detail string `json:"detail,omitempty"`
}

func (u unsaid) key() string { return fmt.Sprintf("%016x/%s", u.Seq, u.Code) }

// ledger folds messages, in order, into what the index will hold: jobs, sessions,
// violations. It keeps only what has changed since the last commit; the index holds
// the rest. One goroutine uses it.
type ledger struct {
	book  *trust.Book
	index *index.Index
	own   keys.PublicKey // the auditor's signing key

	epoch   int
	opening uint64 // sequence of the event that opened it

	jobs     map[string]lifecycle.Job
	facts    map[string][]byte
	seals    bool        // something since the last commit asks for a seal
	urgent   bool        // somebody may wait to read that it was sealed
	said     []string    // keys of what audit events have said since the last call of news
	found    []unsaid    // what was found since the last call of news
	stated   []openFault // faults that events since the last commit have stated
	disowned string      // why the auditor's own events are not believed
	erased   []string    // texts whose order to be erased is not sealed yet
}

func newLedger(book *trust.Book, x *index.Index, own keys.PublicKey) *ledger {
	l := &ledger{book: book, index: x, own: own, epoch: events.FirstEpoch}
	l.clear()
	return l
}

func (l *ledger) clear() {
	l.jobs, l.facts, l.seals, l.urgent, l.stated = map[string]lifecycle.Job{}, map[string][]byte{}, false, false, nil
}

// take folds one message, which is the given leaf of the log.
func (l *ledger) take(st events.Stored, leaf int64) error {
	l.seals = l.seals || !isAudit(st.Subject)
	l.urgent = l.urgent || !isPatient(st.Subject)
	e, judgement := l.book.Open(st)
	var unknown *events.UnknownKind
	believed := judgement == nil || errors.As(judgement, &unknown)
	if id := jobOf(st.Subject); id != "" {
		if err := l.takeJob(id, st, e, judgement); err != nil {
			return err
		}
	} else if !believed {
		if err := l.violation(st, e, "", codeOf(judgement), judgement.Error()); err != nil {
			return err
		}
	}
	if err := l.takeOther(st, e, judgement); err != nil {
		return err
	}
	if underAuditFilter(st.Subject, l.epoch) {
		l.setNumber(factAudit, st.Seq)
	}
	if !believed {
		return nil
	}
	if err := l.takeSession(st, e); err != nil {
		return err
	}
	return l.takeKind(st, e, leaf)
}

// codeOf is the stable name of why an event is not believed.
func codeOf(err error) string {
	var v *trust.Violation
	if errors.As(err, &v) {
		return v.Code
	}
	return trust.CodeMalformed
}

// takeJob folds a message that belongs to a job.
func (l *ledger) takeJob(id string, st events.Stored, e events.Event, judgement error) error {
	j, err := l.job(id)
	if err != nil {
		return err
	}
	before, open := j.LastSeq, !j.Status.Final()
	j, finding := jobs.ApplyOpened(j, e, st.Seq, judgement)
	if j.ID == "" {
		j.ID = id
	}
	l.jobs[id] = j
	if open && j.Status.Final() {
		if err := l.more(factEnded); err != nil {
			return err
		}
	}
	if finding != nil {
		if err := l.violation(st, e, id, finding.Code, finding.Detail); err != nil {
			return err
		}
	}
	if judgement == nil && e.Expect != before {
		return l.violation(st, e, id, codeWrongPosition, fmt.Sprintf("it was signed for the place after sequence %d, the job's last is %d", e.Expect, before))
	}
	return nil
}

// job returns the job as far as it is folded.
func (l *ledger) job(id string) (lifecycle.Job, error) {
	if j, ok := l.jobs[id]; ok {
		return j, nil
	}
	j, _, err := l.index.Get(id)
	return j, err
}

// takeSession checks the counter of a believable event.
func (l *ledger) takeSession(st events.Stored, e events.Event) error {
	key := factSession + e.ID.Actor + "/" + e.ID.Session
	last, err := l.number(key)
	if err != nil {
		return err
	}
	if b := followsInSession(last, e.ID); b != nil {
		if err := l.violation(st, e, jobOf(st.Subject), b.code, b.detail); err != nil {
			return err
		}
	}
	l.setNumber(key, max(last, e.ID.N))
	return nil
}

// takeKind notes what some kinds mean to the auditor itself.
func (l *ledger) takeKind(st events.Stored, e events.Event, leaf int64) error {
	switch p := e.Payload.(type) {
	case *events.TrustPublished:
		l.setNumber(fmt.Sprintf("%s%016x", factTrust, st.Seq), uint64(leaf))
	case *events.TextErased:
		l.setNumber(factErased+e.Subject.ID, st.Seq)
		l.erased = append(l.erased, e.Subject.ID)
	case *events.JobApproved:
		return l.permitted(st, e, p)
	case *events.AuditViolationFound:
		return l.heard(unsaid{Seq: p.Seq, Code: p.Code})
	case *events.EpochCloseRequested:
		if e.Subject.ID == events.EpochID(l.epoch) {
			l.setNumber(factRequest, st.Seq)
		}
	case *events.EpochOpened: // one that opens the next epoch never comes here
		if p.Epoch == l.epoch && st.Seq == l.opening {
			return nil
		}
		return l.violation(st, e, "", codeWrongEpoch, fmt.Sprintf("it does not open the epoch after %d", l.epoch))
	case *events.AuditGapFound:
		return l.heard(unsaid{Seq: p.From, Code: codeGap})
	case *events.AuditFaultFound:
		return l.fault(st.Seq, p)
	case *events.GapAcknowledged:
		return l.acknowledge(p)
	}
	return nil
}

// heard notes that an audit event has said something.
func (l *ledger) heard(u unsaid) error {
	l.facts[factUnsaid+u.key()] = nil
	l.said = append(l.said, u.key())
	if u.Code == codeGap {
		return nil
	}
	return l.count(factFound+u.key(), countViolations)
}

// violation notes a broken rule once. What the auditor itself has signed is no matter
// for another event of its own, which would not be believed either: without that, a
// revoked auditor would report its own reports for ever.
func (l *ledger) violation(st events.Stored, e events.Event, job, code, detail string) error {
	if isAudit(st.Subject) && l.own != "" && l.own.Verify(e.Text, e.Signature.Sig) {
		l.disowned = detail
		return nil
	}
	u := unsaid{Seq: st.Seq, Code: code, Job: job, Detail: detail}
	if _, known, err := l.fact(factFound + u.key()); err != nil || known {
		return err
	}
	return l.tell(u, factFound+u.key(), countViolations)
}

// gap notes missing sequences, both ends included.
func (l *ledger) gap(from, to uint64) error {
	l.seals, l.urgent = true, true
	l.facts[fmt.Sprintf("%s%016x", factOpenGap, from)] = []byte(strconv.FormatUint(to, 10))
	missing, err := l.number(factCount + countMissing)
	if err != nil {
		return err
	}
	l.setNumber(factCount+countMissing, missing+to-from+1)
	u := unsaid{Seq: from, To: to, Code: codeGap}
	return l.tell(u, factFound+u.key(), countGaps)
}

// tell keeps something to be said until it was heard.
func (l *ledger) tell(u unsaid, key, counter string) error {
	body, err := json.Marshal(u)
	if err != nil {
		return err
	}
	l.facts[factUnsaid+u.key()] = body
	l.found = append(l.found, u)
	return l.count(key, counter)
}

// count sets a fact and counts it if it is new.
func (l *ledger) count(key, counter string) error {
	_, known, err := l.fact(key)
	if err != nil || known {
		return err
	}
	l.facts[key] = []byte{1}
	return l.more(factCount + counter)
}

// more adds one to a number.
func (l *ledger) more(key string) error {
	n, err := l.number(key)
	l.setNumber(key, n+1)
	return err
}

// fault notes what the auditor has found wrong with stream or log.
func (l *ledger) fault(seq uint64, p *events.AuditFaultFound) error {
	l.seals, l.urgent = true, true // so that the next head says that dispatch is closed
	l.stated = append(l.stated, openFault{FaultName: events.FaultName{Code: p.Code, Seq: seq}, detail: p.Detail, from: p.From})
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	l.facts[fmt.Sprintf("%s%016x", factFault, seq)] = body
	if p.From > 0 && p.To >= p.From {
		l.setNumber(fmt.Sprintf("%s%016x", factLost, p.From), p.To)
	}
	return nil
}

// acknowledge closes the faults that an admin has named. What is not open, or has
// another name, stays as it is.
func (l *ledger) acknowledge(p *events.GapAcknowledged) error {
	open, err := l.open()
	if err != nil {
		return err
	}
	for _, o := range open {
		if slices.Contains(p.Faults, o.FaultName) {
			l.facts[o.key()] = nil
		}
	}
	n, err := l.number(factCount + countAcks)
	l.setNumber(factCount+countAcks, n+1)
	return err
}

// key is the fact that holds the fault open.
func (o openFault) key() string {
	if o.Code == codeGap {
		return fmt.Sprintf("%s%016x", factOpenGap, o.Seq)
	}
	return fmt.Sprintf("%s%016x", factFault, o.Seq)
}

// open lists the faults that nobody has acknowledged, gaps first, by sequence.
func (l *ledger) open() ([]openFault, error) {
	var out []openFault
	for _, prefix := range []string{factOpenGap, factFault} {
		keys, err := l.keys(prefix)
		if err != nil {
			return nil, err
		}
		slices.Sort(keys)
		for _, key := range keys {
			body, _, err := l.fact(key)
			if err != nil {
				return nil, err
			}
			o, err := readFault(key, prefix, body)
			if err != nil {
				return nil, fmt.Errorf("%w: fact %s: %v", index.ErrDamaged, key, err)
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// lost lists the sequences that the stream has lost after they were read.
func (l *ledger) lost() ([]Gap, error) {
	keys, err := l.keys(factLost)
	var out []Gap
	for _, key := range keys {
		g := Gap{}
		if g.From, err = strconv.ParseUint(key[len(factLost):], 16, 64); err == nil {
			g.To, err = l.number(key)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: fact %s: %v", index.ErrDamaged, key, err)
		}
		out = append(out, g)
	}
	return out, err
}

func readFault(key, prefix string, body []byte) (o openFault, err error) {
	if o.Seq, err = strconv.ParseUint(key[len(prefix):], 16, 64); err != nil {
		return o, err
	}
	if prefix == factOpenGap {
		o.Code = codeGap
		o.To, err = strconv.ParseUint(string(body), 10, 64)
		return o, err
	}
	var p events.AuditFaultFound
	err = json.Unmarshal(body, &p)
	o.Code, o.detail, o.from = p.Code, p.Detail, p.From
	return o, err
}

// keys lists the keys of facts under a prefix, in no order.
func (l *ledger) keys(prefix string) ([]string, error) {
	var out []string
	err := l.index.Facts(prefix, func(key string, _ []byte) error {
		if _, changed := l.facts[key]; !changed {
			out = append(out, key)
		}
		return nil
	})
	for key, value := range l.facts {
		if value != nil && len(key) > len(prefix) && key[:len(prefix)] == prefix {
			out = append(out, key)
		}
	}
	return out, err
}

// unsaid lists what is still to be published.
func (l *ledger) unsaid() ([]unsaid, error) {
	keys, err := l.keys(factUnsaid)
	if err != nil {
		return nil, err
	}
	var out []unsaid
	for _, key := range keys {
		body, _, err := l.fact(key)
		if err != nil {
			return nil, err
		}
		var u unsaid
		if err := json.Unmarshal(body, &u); err != nil {
			return nil, fmt.Errorf("%w: fact %s: %v", index.ErrDamaged, key, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// news returns what was found and what was said since the last call.
func (l *ledger) news() (found []unsaid, said []string) {
	found, said = l.found, l.said
	l.found, l.said = nil, nil
	return found, said
}

func (l *ledger) fact(key string) ([]byte, bool, error) {
	if v, changed := l.facts[key]; changed {
		return v, v != nil, nil
	}
	return l.index.Fact(key)
}

// number reads a fact that is a number, 0 if there is none.
func (l *ledger) number(key string) (uint64, error) {
	v, found, err := l.fact(key)
	if err != nil || !found {
		return 0, err
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: fact %s holds %q", index.ErrDamaged, key, v)
	}
	return n, nil
}

// counts returns what status shows.
func (l *ledger) counts() (c counts, err error) {
	for key, into := range map[string]*uint64{
		factCount + countViolations: &c.found, factCount + countGaps: &c.gaps, factCount + countMissing: &c.missing,
		factCount + countAcks: &c.acks,
		factRequest:           &c.request, factEnded: &c.ended, factDropped: &c.dropped,
	} {
		if *into, err = l.number(key); err != nil {
			return counts{}, err
		}
	}
	if c.lost, err = l.lost(); err != nil {
		return c, err
	}
	c.open, err = l.open()
	return c, err
}

func (l *ledger) setNumber(key string, n uint64) { l.facts[key] = strconv.AppendUint(nil, n, 10) }

// commit moves everything since the last commit into the index and returns the jobs
// that changed.
func (l *ledger) commit(to index.Position) ([]lifecycle.Job, error) {
	changed := make([]lifecycle.Job, 0, len(l.jobs))
	for _, j := range l.jobs {
		changed = append(changed, j)
	}
	if err := l.index.Apply(index.Batch{Jobs: changed, Facts: l.facts, To: to}); err != nil {
		return nil, err
	}
	l.clear()
	return changed, nil
}
