package person

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/permits"
	"github.com/banksman/banksman/services/internal/redact"
	"github.com/banksman/banksman/services/internal/texts"
)

// Codes of refusals about requests, bars and grants.
const (
	CodeEnded       = "already_ended"
	CodeNotApproved = "not_approved"
	CodeStarted     = "already_started"
	CodeNotBarred   = "not_barred"
	CodeOwnBar      = "own_bar"
	CodeBadText     = "bad_text"
	CodeBadGrant    = "bad_grant"
	CodeNoGrant     = "unknown_grant"
	CodeSecret      = "secret"
)

// maxTextBytes bounds a reason or a comment.
const maxTextBytes = 4096

// fit refuses a reason or a comment that no record should hold.
func fit(what, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return refuse(CodeNoReason, "", "%s: there is no text", what)
	case len(text) > maxTextBytes:
		return refuse(CodeBadText, "say it shorter", "%s: %d bytes, at most %d are taken", what, len(text), maxTextBytes)
	case strings.ToValidUTF8(text, "") != text || strings.ContainsRune(text, 0):
		return refuse(CodeBadText, "send text in UTF-8", "%s: the text is not valid UTF-8", what)
	}
	return free(what, text)
}

// free refuses words that look like they hold a secret: they are kept, shown, and
// told to agents.
func free(what, text string) error {
	d, err := redact.NewDetector()
	if err != nil {
		return err
	}
	if rule := d.Text(text); rule != "" {
		return refuse(CodeSecret, "say it in other words", "%s: the text looks like it holds a secret (%s)", what, rule)
	}
	return nil
}

// words are an event about to be said, at the position that was read.
type words struct {
	subject events.Subject
	expect  uint64
	payload any
}

// say signs and stores what draft makes, which reads anew whenever somebody was
// faster. Without a payload nothing is said.
func (d *Desk) say(ctx context.Context, draft func() (words, error)) error {
	if err := d.Standing.Refresh(ctx); err != nil {
		return err
	}
	var appender *bus.Appender
	for {
		w, err := draft()
		if err != nil || w.payload == nil {
			return err
		}
		if appender == nil {
			if appender, err = d.pen(w.subject.Kind()); err != nil {
				return err
			}
		}
		_, err = appender.Append(ctx, w.subject, w.expect, w.payload)
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("store %s of %s: %w", w.subject.Kind(), w.subject.ID, err)
		}
		return nil
	}
}

func (d *Desk) asks() asks.Reader { return asks.Reader{Bus: d.Bus, Standing: d.Standing} }

// settleWait is how long a request waits for the gate or the worker to act.
const settleWait = 15 * time.Second

// Cancel asks for the end of a job and returns it once it has ended, or as it is
// when nobody has acted within 15 s. A job that was cancelled before is
// returned as it is.
func (d *Desk) Cancel(ctx context.Context, id, reason string) (lifecycle.Job, error) {
	return d.request(ctx, id, reason, "ask.cancel_requested", func(j lifecycle.Job, ref string) (any, error) {
		if j.Status == lifecycle.Cancelled {
			return nil, nil
		}
		if j.Status.Final() {
			return nil, refuse(CodeEnded, "look at it with 'banksman show "+j.ID+"'", "cancel job %s: it is %s", j.ID, j.Status)
		}
		return events.AskCancelRequested{Reason: ref}, nil
	}, lifecycle.Status.Final)
}

// Revoke asks that an approved job be never started and returns it once it is
// revoked. A job that was revoked before is returned as it is.
func (d *Desk) Revoke(ctx context.Context, id, reason string) (lifecycle.Job, error) {
	return d.request(ctx, id, reason, "ask.revoke_requested", func(j lifecycle.Job, ref string) (any, error) {
		switch {
		case j.Status == lifecycle.Revoked:
			return nil, nil
		case j.Status.Final():
			return nil, refuse(CodeEnded, "look at it with 'banksman show "+j.ID+"'", "revoke job %s: it is %s", j.ID, j.Status)
		case j.Status == lifecycle.Running:
			return nil, refuse(CodeStarted, "end it with 'banksman cancel "+j.ID+"'", "revoke job %s: it has been started", j.ID)
		case j.Status.Undecided():
			return nil, refuse(CodeNotApproved, "deny it with 'banksman deny "+j.ID+"'", "revoke job %s: it is not approved", j.ID)
		}
		return events.AskRevokeRequested{Reason: ref}, nil
	}, func(s lifecycle.Status) bool { return s.Final() || s == lifecycle.Running })
}

// request makes a request, unless the same one was made before, and waits for
// what it leads to.
func (d *Desk) request(ctx context.Context, id, reason string, k events.Kind, draft func(j lifecycle.Job, ref string) (any, error), done func(lifecycle.Status) bool) (lifecycle.Job, error) {
	moved, stop, err := d.watch(ctx, id)
	if err != nil {
		return lifecycle.Job{}, err
	}
	defer stop()
	keep := texts.Try(ctx, d.Bus, reason)
	err = d.say(ctx, func() (words, error) {
		j, err := d.Standing.Job(ctx, id)
		if err != nil {
			return words{}, err
		}
		if payload, err := draft(j, reason); err != nil || payload == nil {
			return words{}, err
		}
		made, last, err := d.asks().Requests(ctx, j)
		if err != nil {
			return words{}, err
		}
		for _, r := range made {
			if r.Kind == k {
				return words{}, nil
			}
		}
		if err := fit("ask about job "+j.ID, reason); err != nil {
			return words{}, err
		}
		ref, err := keep()
		if err != nil {
			return words{}, err
		}
		payload, err := draft(j, ref)
		if err != nil {
			return words{}, err
		}
		return words{events.For(k, j.Pool, j.ID, d.Config.ActorName), last, payload}, nil
	})
	if err != nil {
		return lifecycle.Job{}, err
	}
	wait, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	for {
		j, err := d.Standing.Job(ctx, id)
		if err != nil || done(j.Status) {
			return j, err
		}
		select {
		case <-moved:
		case <-wait.Done():
			return j, ctx.Err()
		}
	}
}

// watch signals when the stream has stored something about a job.
func (d *Desk) watch(ctx context.Context, id string) (<-chan struct{}, func(), error) {
	if _, err := d.Standing.Job(ctx, id); err != nil { // an id that is none must not become a subject
		return nil, nil, err
	}
	moved := make(chan struct{}, 1)
	stop, err := d.Bus.Live(ctx, events.Filter("job", id), func(events.Stored) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch job %s: %w", id, err)
	}
	return moved, stop, nil
}

// Comment writes a remark about a job.
func (d *Desk) Comment(ctx context.Context, id, text string) error {
	if err := fit("comment on job "+id, text); err != nil {
		return err
	}
	keep := texts.Once(ctx, d.Bus, text)
	return d.say(ctx, func() (words, error) {
		j, err := d.Standing.Job(ctx, id)
		if err != nil {
			return words{}, err
		}
		_, last, err := d.asks().Comments(ctx, id)
		if err != nil {
			return words{}, err
		}
		ref, err := keep()
		return words{events.For("ask.commented", j.Pool, id, d.Config.ActorName), last, events.AskCommented{Text: ref}}, err
	})
}

// Bar makes the denial of a job stick: the same command of the same proposer is
// denied at once from here on, with the same reason.
func (d *Desk) Bar(ctx context.Context, j lifecycle.Job) error {
	content := asks.ContentOf(j)
	return d.say(ctx, func() (words, error) {
		b, last, err := d.asks().Bar(ctx, content, j.Proposal.Proposer)
		if err != nil || b != nil {
			return words{}, err
		}
		payload := events.AskBarred{Job: j.ID, Denied: j.ProposalDigest, Reason: j.Denial.Ruling.Reason}
		return words{events.For("ask.barred", j.Pool, content, d.Config.ActorName), last, payload}, nil
	})
}

// Clear lifts the bar on what a job asked for, so that it may be asked for
// again. The job itself stays denied.
func (d *Desk) Clear(ctx context.Context, id, reason string) (lifecycle.Job, error) {
	j, err := d.Standing.Job(ctx, id)
	if err != nil {
		return j, err
	}
	if j.Proposal == nil {
		return j, refuse(CodeTainted, "", "lift the bar on job %s: its proposal cannot be believed", id)
	}
	if j.Proposal.Proposer == (events.Proposer{Kind: "person", ID: d.Config.ActorName}) {
		return j, refuse(CodeOwnBar, "ask another person", "lift the bar on job %s: you proposed it yourself", id)
	}
	content := asks.ContentOf(j)
	keep := texts.Once(ctx, d.Bus, reason)
	err = d.say(ctx, func() (words, error) {
		b, last, err := d.asks().Bar(ctx, content, j.Proposal.Proposer)
		if err == nil && b == nil {
			err = refuse(CodeNotBarred, "", "lift the bar on job %s: what it asked for is not barred", id)
		}
		if err != nil {
			return words{}, err
		}
		ref, err := keep()
		return words{events.For("ask.unbarred", j.Pool, content, d.Config.ActorName), last, events.AskUnbarred{Barred: b.Seq, Reason: ref}}, err
	})
	return j, err
}

// Give signs a yes in advance and returns the grant.
func (d *Desk) Give(ctx context.Context, g events.GrantGiven) (grant.Grant, error) {
	if err := fit("give a grant", g.Reason); err != nil {
		return grant.Grant{}, err
	}
	if g.ValidS < 1 || g.ValidS > d.Config.GrantMaxS {
		return grant.Grant{}, refuse(CodeBadGrant, "name a shorter time, or raise grant_max_s of [person] and of [gate]", "give a grant for %d s: it must be 1 to %d", g.ValidS, d.Config.GrantMaxS)
	}
	if g.Uses < 1 || g.Uses > events.MaxGrantUses {
		return grant.Grant{}, refuse(CodeBadGrant, "", "give a grant for %d uses: it must be 1 to %d", g.Uses, events.MaxGrantUses)
	}
	if err := permits.Check(g.Scope, host.PolicyEnv(d.Layout)); err != nil {
		return grant.Grant{}, refuse(CodeBadGrant, "", "%v", err)
	}
	subject := events.For("grant.given", events.SiteScope, strings.ToLower(rand.Text()), d.Config.ActorName)
	ref, err := texts.Keep(ctx, d.Bus, g.Reason)
	if err != nil {
		return grant.Grant{}, err
	}
	g.Reason = ref
	if err := d.say(ctx, func() (words, error) { return words{subject, 0, g}, nil }); err != nil {
		return grant.Grant{}, err
	}
	return d.grants().Grant(ctx, subject.ID)
}

// TakeBack revokes a grant at once; no job starts by it any more. One that was
// revoked before is returned as it is.
func (d *Desk) TakeBack(ctx context.Context, id, reason string) (grant.Grant, error) {
	if err := fit("revoke grant "+id, reason); err != nil {
		return grant.Grant{}, err
	}
	keep := texts.Try(ctx, d.Bus, reason)
	err := d.say(ctx, func() (words, error) {
		g, err := d.grants().Grant(ctx, id)
		switch {
		case err != nil:
			return words{}, err
		case g.Status == grant.None:
			return words{}, refuse(CodeNoGrant, "list them with 'banksman grant ls'", "revoke grant %s: the log holds none of that name", id)
		case g.Status == grant.Revoked:
			return words{}, nil
		}
		ref, err := keep()
		return words{events.For("grant.revoked", events.SiteScope, id, d.Config.ActorName), g.LastSeq, events.GrantRevoked{Reason: ref}}, err
	})
	if err != nil {
		return grant.Grant{}, err
	}
	return d.grants().Grant(ctx, id)
}

func (d *Desk) grants() permits.Reader {
	return permits.Reader{Bus: d.Bus, Standing: d.Standing}
}
