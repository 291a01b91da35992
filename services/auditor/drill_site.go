package auditor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/witness"
)

// drillOrigin is the site that a drill makes for itself.
const drillOrigin = "site-drill"

// drillSite is a small site with keys, a lock and a witness of its own. Nothing of it
// belongs to a real one.
type drillSite struct {
	dir      string
	signers  map[string]*keys.Signer
	signer   note.Signer // of checkpoints
	vkey     string
	stranger note.Signer // a checkpoint key that nobody trusts
	policy   witness.Policy
	witness  *witness.Server
	stop     func() // ends the witness

	history []events.Stored // everything that was published, in order
	at      time.Time
	n       map[string]uint64
	last    map[string]uint64
}

// newDrillSite makes keys and a witness, which listens on loopback until stop.
func newDrillSite(dir string) (*drillSite, error) {
	s := &drillSite{dir: dir, signers: map[string]*keys.Signer{}, n: map[string]uint64{}, last: map[string]uint64{}}
	var err error
	for _, actor := range []string{"root", "proposer", "gate", "witness"} {
		if s.signers[actor], err = keys.GenerateSigner(); err != nil {
			return nil, err
		}
	}
	if s.signer, s.vkey, err = s.checkpointKey(); err != nil {
		return nil, err
	}
	if s.stranger, _, err = s.checkpointKey(); err != nil {
		return nil, err
	}
	return s, s.listen()
}

func (s *drillSite) checkpointKey() (note.Signer, string, error) {
	key, err := keys.GenerateCheckpointKey(site.CheckpointOrigin(drillOrigin))
	if err != nil {
		return nil, "", err
	}
	return key.Signer(), key.Verifier(), nil
}

// listen starts the witness.
func (s *drillSite) listen() error {
	key := s.signers["witness"]
	public, err := key.Public().Bytes()
	if err != nil {
		return err
	}
	signer, err := witness.NewSigner("witness.drill", public, key.Sign)
	if err != nil {
		return err
	}
	if s.witness, err = witness.NewServer(filepath.Join(s.dir, "witness"), signer, []string{s.vkey}, func() time.Time { return s.at }); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.witness, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	s.stop = func() { server.Close(); <-done }
	s.policy, err = witness.ParsePolicy(fmt.Appendf(nil, "witness w %s http://%s\nquorum w\n", signer.Verifier(), l.Addr()))
	return err
}

// message makes and signs the next message of an actor.
func (s *drillSite) message(kind events.Kind, scope, id, actor string, payload any) (events.Message, error) {
	s.n[actor]++
	subject := events.For(kind, scope, id, actor)
	m, err := events.New(drillOrigin, subject, events.ID{Actor: actor, Session: "00000000000000000d11", N: s.n[actor]}, s.at, s.last[subject.Filter()], payload)
	if err == nil {
		m.Sign(drillOrigin, string(s.signers[actor].Public()), s.signers[actor].Sign)
	}
	return m, err
}

// store is what a stream does with a message.
func (s *drillSite) store(m events.Message) events.Stored {
	s.at = s.at.Add(time.Second)
	st := events.Stored{Seq: uint64(len(s.history)) + 1, Time: s.at, Subject: m.Subject.String(), Header: m.Header, Data: m.Data}
	s.last[m.Subject.Filter()] = st.Seq
	s.history = append(s.history, st)
	return st
}

// say publishes one event.
func (s *drillSite) say(kind events.Kind, scope, id, actor string, payload any) error {
	m, err := s.message(kind, scope, id, actor, payload)
	if err == nil {
		s.store(m)
	}
	return err
}

func (s *drillSite) trust() error {
	file := events.TrustPublished{Version: 1, Origin: drillOrigin, CheckpointKeys: []string{s.vkey}}
	for actor, role := range map[string]events.Role{"proposer": events.RoleProposer, "gate": events.RoleGate} {
		file.Actors = append(file.Actors, events.Actor{Actor: actor, Roles: []events.Role{role}, Sign: string(s.signers[actor].Public())})
	}
	return s.say("trust.published", events.SiteScope, events.TrustID, "root", file)
}

func (s *drillSite) propose(job string) error {
	return s.say("job.proposed", "default", job, "proposer", events.JobProposed{
		Argv: []string{"/bin/true"}, Cwd: "/", Pool: "default", TimeoutS: 10, MaxAttempts: 1, ExpiresS: 3600,
		Reason: "a drill", Proposer: events.Proposer{Kind: "agent", ID: "drill"},
	})
}

func (s *drillSite) approval() events.JobApproved {
	return events.JobApproved{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a drill"}, ValidS: 3600, MaxAttempts: 1}
}

// live publishes a few jobs.
func (s *drillSite) live(from, to int) error {
	for i := from; i < to; i++ {
		job := fmt.Sprintf("job-%d", i)
		if err := s.propose(job); err != nil {
			return err
		}
		if err := s.say("job.approved", "default", job, "gate", s.approval()); err != nil {
			return err
		}
	}
	return nil
}

// drillHost is the folder of one auditor and what its lock holds.
type drillHost struct{ dir string }

func (h drillHost) log() string  { return filepath.Join(h.dir, "log") }
func (h drillHost) head() string { return filepath.Join(h.dir, "head") }

// build makes a host whose log holds these events, as an auditor would write it; after
// each of the sizes in seals it is sealed.
func (s *drillSite) build(name string, signer note.Signer, history []events.Stored, seals ...int) (h drillHost, err error) {
	h = drillHost{filepath.Join(s.dir, name)}
	if err := os.MkdirAll(h.head(), 0o700); err != nil {
		return h, err
	}
	l, err := tlog.Create(h.log(), tlog.Genesis{
		Origin: site.CheckpointOrigin(drillOrigin), Stream: streamName, Created: s.history[0].Time, Config: sha256.Sum256(s.history[0].Data),
	}, signer, tlog.FileLock(h.head()))
	if err != nil {
		return h, err
	}
	defer func() {
		if e := l.Close(); err == nil {
			err = e
		}
	}()
	for i, st := range history {
		st.Seq = uint64(i) + 1
		if _, err := l.Append(recordOf(st), metaOf(st)); err != nil {
			return h, err
		}
		for _, n := range seals {
			if n != i+1 {
				continue
			}
			if _, err := l.Seal(); err != nil {
				return h, err
			}
		}
	}
	return h, nil
}

// cosign shows a host's head to the witness and stores what it answers.
func (s *drillSite) cosign(ctx context.Context, h drillHost) error {
	r, err := tlog.OpenReader(h.log())
	if err != nil {
		return err
	}
	defer r.Close()
	head, err := r.Checkpoint()
	if err != nil {
		return err
	}
	grown := func(old int64) (tlog.TreeProof, error) { return r.ProveGrowth(old, head.Size) }
	client := witness.Client{Witness: s.policy.Witnesses[0]}
	lines, err := client.Cosign(ctx, 0, head, grown)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.log(), "checkpoint"), append(head.Note, lines...), 0o600)
}
