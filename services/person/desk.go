package person

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/texts"
)

// Desk is where a person decides.
type Desk struct {
	Config   Config
	Layout   site.Layout
	Bus      *bus.Conn
	Standing *standing.Standing
	// Ask asks for the passphrase of the signing key, when it has one.
	Ask func(prompt string) ([]byte, error)
	// Show is told what is about to be signed.
	Show func(lifecycle.Job)

	signer *keys.Signer // once it was opened
}

// ResolveWait is how long an approval waits for a worker to report what would
// run.
const ResolveWait = 10 * time.Second

// Approve signs a yes to what the job is now and returns the job after it.
func (d *Desk) Approve(ctx context.Context, id string) (lifecycle.Job, error) {
	return d.ApproveDigest(ctx, id, "")
}

// ApproveDigest signs a yes to a job whose resolution's digest, which covers the
// proposal too, begins with a prefix that the person names; another one is
// refused, and none where a rule wants it.
func (d *Desk) ApproveDigest(ctx context.Context, id, prefix string) (lifecycle.Job, error) {
	return d.approve(ctx, id, prefix, prefix)
}

// ApproveListed signs a yes to a job as it was listed, by the digest in the list.
// Where a rule wants the person to name the digest that is not enough.
func (d *Desk) ApproveListed(ctx context.Context, id, listed string) (lifecycle.Job, error) {
	return d.approve(ctx, id, listed, "")
}

// approve signs a yes to a job that has the expected digest; confirmed is what the
// person has named of it.
func (d *Desk) approve(ctx context.Context, id, expected, confirmed string) (lifecycle.Job, error) {
	return d.decide(ctx, id, "job.approved", func(j lifecycle.Job) (any, error) {
		p, err := d.Standing.Policy(ctx)
		if err != nil {
			return nil, err
		}
		a, err := approve(&d.Config, j, d.Config.ActorName, p.Digest(), time.Now())
		if err == nil {
			err = sameDigest(j, confirmed)
		}
		if err == nil && expected != confirmed {
			err = sameDigest(j, expected)
		}
		if err != nil {
			return nil, err
		}
		a.Confirmed = strings.ToLower(confirmed)
		return a, nil
	})
}

// Deny signs a no, for good, and returns the job after it.
func (d *Desk) Deny(ctx context.Context, id, reason string) (lifecycle.Job, error) {
	keep := texts.Try(ctx, d.Bus, reason)
	return d.decide(ctx, id, "job.denied", func(j lifecycle.Job) (any, error) {
		p, err := deny(j, reason, time.Now())
		if err == nil {
			p.Ruling.Reason, err = keep()
		}
		if err != nil {
			return nil, err
		}
		return p, nil
	})
}

// decide reads a job, lets draft decide, signs, and reads it again. When the job
// has moved in between it decides anew, and shows anew what is signed.
func (d *Desk) decide(ctx context.Context, id string, k events.Kind, draft func(lifecycle.Job) (any, error)) (lifecycle.Job, error) {
	var appender *bus.Appender
	for {
		j, payload, err := d.settled(ctx, id, draft)
		if err != nil {
			return j, err
		}
		if d.Show != nil {
			d.Show(j)
		}
		if appender == nil {
			if appender, err = d.pen(k); err != nil {
				return j, err
			}
		}
		seq, err := appender.Append(ctx, events.For(k, j.Pool, j.ID, d.Config.ActorName), j.LastSeq, payload)
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return j, fmt.Errorf("store the decision about job %s: %w", id, err)
		}
		return d.counted(ctx, id, seq)
	}
}

// pen opens the signing key. A key that the trust file does not name would taint
// the job for good.
func (d *Desk) pen(k events.Kind) (*bus.Appender, error) {
	path := d.Layout.SignKey(d.Config.ActorName)
	signer, err := d.signer, error(nil)
	if signer == nil {
		if signer, err = keys.LoadSigner(path, d.Ask); err != nil {
			return nil, err
		}
	}
	file := d.Standing.Book().Current()
	if file == nil {
		return nil, refuse(CodeNoRight, "", "sign as %s: no trust file that this banksman can read is in force", d.Config.ActorName)
	}
	switch line, ok := file.Find(d.Config.ActorName); {
	case !ok || !line.MayPublish(k):
		return nil, refuse(CodeNoRight, "ask who holds the root key; see 'banksman actor ls'", "sign as %s: trust file %d does not let this actor say %s", d.Config.ActorName, file.Version, k)
	case !line.Believes(string(signer.Public())):
		return nil, refuse(CodeOtherKey, "use the key that belongs to the trust file, or have this one enrolled", "sign with %s: trust file %d names another key for %s", path, file.Version, d.Config.ActorName)
	}
	d.signer = signer
	return d.Bus.Appender(host.Signing{Signer: signer}), nil
}

// counted returns the job after a decision. A decision that the fold refused,
// because it came too late by the stream's clock, is told as a refusal.
func (d *Desk) counted(ctx context.Context, id string, seq uint64) (lifecycle.Job, error) {
	j, err := d.Standing.Job(ctx, id)
	if err != nil {
		return j, fmt.Errorf("the decision is stored as event %d; read job %s again: %w", seq, id, err)
	}
	counts := j.DeniedBy == d.Config.ActorName
	for _, a := range j.Approvals {
		counts = counts || a.Seq == seq
	}
	if !counts {
		return j, refuse(CodeTooLate, "look at it with 'banksman events --job "+id+"'", "decide job %s: event %d was stored and does not count; the job is %s", id, seq, j.Status)
	}
	return j, nil
}

// settled waits for a worker's report and for the gate's assessment, where they
// are still to come, and returns the job with what is to be signed.
func (d *Desk) settled(ctx context.Context, id string, draft func(lifecycle.Job) (any, error)) (lifecycle.Job, any, error) {
	if _, err := d.Standing.Job(ctx, id); err != nil { // an id that is none must not become a subject
		return lifecycle.Job{}, nil, err
	}
	moved := make(chan struct{}, 1)
	stop, err := d.Bus.Live(ctx, events.Filter("job", id), func(events.Stored) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return lifecycle.Job{}, nil, fmt.Errorf("watch job %s: %w", id, err)
	}
	defer stop()
	wait, cancel := context.WithTimeout(ctx, ResolveWait)
	defer cancel()
	for {
		j, err := d.Standing.Job(ctx, id)
		if err != nil {
			return j, nil, err
		}
		payload, err := draft(j)
		var r *Refusal
		unresolved := errors.As(err, &r) && r.Code == CodeUnresolved
		early := err == nil && !j.Assessed()
		if _, denial := payload.(*events.JobDenied); !unresolved && (!early || denial) {
			return j, payload, err
		}
		select {
		case <-moved:
		case <-wait.Done():
			if ctx.Err() != nil {
				return j, nil, ctx.Err()
			}
			if err == nil {
				err = refuse(CodeUnresolved, "start the approver", "approve job %s: the gate has not assessed it", id)
			}
			return j, nil, err
		}
	}
}
