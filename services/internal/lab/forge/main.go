// Command forge stores approvals that nobody gave, from the strongest place an
// attacker can have: the bus's own log-in key, which may write any subject. It
// shows and tests that owning the bus is not enough to make anything run.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
)

func main() {
	dir := flag.String("dir", os.Getenv(site.EnvDir), "the site's folder")
	job := flag.String("job", "", "the job to approve")
	how := flag.String("how", "stranger", "stranger, unknown, key:ACTOR, proposer, nobody, stolen:FILE, replay:JOB, expired, other-proposal, other-resolution, self or denied")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	seq, err := forge(ctx, site.Layout{Dir: *dir}, *job, *how)
	if err != nil {
		fmt.Fprintln(os.Stderr, "forge:", err)
		os.Exit(1)
	}
	fmt.Println(seq)
}

// forger has the bus's key and what it needs to know of the job.
type forger struct {
	layout site.Layout
	site   host.SiteConfig
	person string
	bus    *bus.Conn
	job    lifecycle.Job
}

func forge(ctx context.Context, l site.Layout, job, how string) (uint64, error) {
	s, err := host.LoadSite(l)
	if err != nil {
		return 0, err
	}
	actor, power := "bus", events.RoleBus
	if how == "denied" {
		actor, power = "proposer", events.RoleProposer // what its own rights allow
	}
	c, err := host.Connection{Layout: l, Site: s, Actor: actor, Power: power}.Dial(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	st := host.NewStanding(c, s, l)
	j, err := st.Job(ctx, job)
	if err != nil {
		return 0, err
	}
	f := &forger{layout: l, site: s, bus: c, job: j}
	for _, a := range st.Book().Current().Actors {
		if a.Has(events.RolePerson) {
			f.person = a.Actor
		}
	}
	m, err := f.message(ctx, how)
	if err != nil {
		return 0, err
	}
	return c.AppendRaw(ctx, m)
}

// message makes the forged approval.
func (f *forger) message(ctx context.Context, how string) (events.Message, error) {
	approval := events.JobApproved{
		Proposal: f.job.ProposalDigest, Resolution: f.job.ResolutionDigest, Basis: "person", ValidS: 3600, MaxAttempts: f.job.Proposal.MaxAttempts,
	}
	if f.job.Assessment != nil {
		approval.Policy = f.job.Assessment.Policy
	}
	signer, err := keys.GenerateSigner()
	if err != nil {
		return events.Message{}, err
	}
	actor := f.person
	how, from, _ := strings.Cut(how, ":")
	switch how {
	case "stranger", "denied": // the person's name under a key of one's own
	case "proposer": // the proposer's own key under its own name
		actor = "proposer"
		signer, err = keys.LoadSigner(f.layout.SignKey(actor), nil)
	case "unknown": // a name that no trust file has
		actor = "mallory"
	case "key": // an actor's real keys, such as one that was revoked
		actor = from
		signer, err = keys.LoadSigner(f.layout.SignKey(actor), nil)
	case "stolen": // the person's name under a key of the person's, such as one that was retired
		signer, err = keys.LoadSigner(from, nil)
	case "nobody": // no signature at all
	case "expired", "other-proposal", "other-resolution", "self": // the person's real key, stolen, and a useless approval
		signer, err = keys.LoadSigner(f.layout.SignKey(actor), nil)
		switch how {
		case "expired":
			approval.ValidS = 0
		case "other-proposal":
			approval.Proposal = strings.Repeat("0", 64)
		case "other-resolution":
			approval.Resolution = strings.Repeat("0", 64)
		}
	case "replay": // a real approval of another job, moved
		return f.replay(ctx, from)
	default:
		err = fmt.Errorf("unknown -how %q", how)
	}
	if err != nil {
		return events.Message{}, err
	}
	session := make([]byte, 10)
	rand.Read(session)
	id := events.ID{Actor: actor, Session: hex.EncodeToString(session), N: 1}
	m, err := events.New(f.site.Origin, events.For("job.approved", f.job.Pool, f.job.ID, actor), id, time.Now(), f.job.LastSeq, approval)
	if err != nil || how == "nobody" {
		return m, err
	}
	m.Sign(f.site.Origin, string(signer.Public()), signer.Sign)
	return m, nil
}

// replay moves the signed approval of another job to this one.
func (f *forger) replay(ctx context.Context, from string) (events.Message, error) {
	history, err := f.bus.History(ctx, from)
	if err != nil {
		return events.Message{}, err
	}
	for _, st := range history {
		s, err := events.ParseSubject(st.Subject)
		if err != nil || s.Kind() != "job.approved" {
			continue
		}
		s.Scope, s.ID = f.job.Pool, f.job.ID
		header := map[string][]string{}
		for name, values := range st.Header {
			if strings.HasPrefix(name, "ce-") || name == events.HeaderSignature {
				header[name] = values
			}
		}
		header[events.HeaderExpect] = []string{fmt.Sprint(f.job.LastSeq)}
		header[events.HeaderExpectFilter] = []string{s.Filter()}
		return events.Message{Subject: s, Expect: f.job.LastSeq, Header: header, Data: st.Data}, nil
	}
	return events.Message{}, fmt.Errorf("job %s was never approved", from)
}
