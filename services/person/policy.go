package person

import (
	"context"
	"errors"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/policy"
)

// CodePolicyMoved means that another policy came into force since the person looked.
const CodePolicyMoved = "policy_moved"

// Publish puts a policy into force, signed with the person's own key, and returns the
// sequence of its event. Over is the digest of the policy that the new one was compared
// with; when another one is in force by now, nothing is signed, since the person has
// not seen what would change.
func (d *Desk) Publish(ctx context.Context, p *policy.Policy, over string) (uint64, error) {
	const kind = events.Kind("policy.published")
	if err := d.Standing.Refresh(ctx); err != nil {
		return 0, err
	}
	subject := events.For(kind, events.SiteScope, events.PolicyID, d.Config.ActorName)
	last, _, err := d.Bus.Last(ctx, subject.Filter())
	if err != nil {
		return 0, fmt.Errorf("read the policy in force: %w", err)
	}
	now, err := d.Standing.Policy(ctx)
	if err != nil && last.Seq > 0 && over != "" {
		return 0, err
	}
	if now.Digest() != over {
		return 0, policyMoved(now.Digest())
	}
	appender, err := d.pen(kind)
	if err != nil {
		return 0, err
	}
	seq, err := appender.Append(ctx, subject, last.Seq, &events.PolicyPublished{Digest: p.Digest(), Text: string(p.Text())})
	var conflict *bus.Conflict
	if errors.As(err, &conflict) {
		return 0, policyMoved("")
	}
	if err != nil {
		return 0, fmt.Errorf("publish policy %.16s: %w", p.Digest(), err)
	}
	return seq, nil
}

func policyMoved(now string) error {
	if now != "" {
		now = fmt.Sprintf(", now %.16s", now)
	}
	return refuse(CodePolicyMoved, "look at the changes again and publish again", "publish a policy: another one came into force in the meantime%s", now)
}
