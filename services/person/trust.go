package person

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/keys"
)

// Amend publishes a new trust file: the one in force after a change, signed by
// the root key. Everything that reads the old one sees the new one from the next
// event on. The person only carries it; the root's signature is what counts.
func (d *Desk) Amend(ctx context.Context, root *keys.Signer, change func(*events.TrustPublished) error) (*events.TrustPublished, error) {
	if root.Public() != d.Standing.Book().Root() {
		return nil, refuse(CodeWrongRoot, "use the root key that init made", "sign a trust file: the key is not this site's root key")
	}
	for {
		subject := events.For("trust.published", events.SiteScope, events.TrustID, string(events.RoleRoot))
		last, found, err := d.Bus.Last(ctx, subject.Filter())
		if err != nil || !found {
			return nil, fmt.Errorf("read the trust file in force: %w", errors.Join(err, errNoTrust(found)))
		}
		// Afterwards, so that the file that is changed is the last one stored: a
		// newer one makes the append fail.
		if err := d.Standing.Refresh(ctx); err != nil {
			return nil, err
		}
		current := d.Standing.Book().Current()
		if current == nil {
			return nil, fmt.Errorf("read the trust file in force: %w", errNoTrust(false))
		}
		next := *current
		next.Actors, next.CheckpointKeys = slices.Clone(next.Actors), slices.Clone(next.CheckpointKeys)
		next.Version++
		if err := change(&next); errors.Is(err, ErrUnchanged) {
			return current, nil
		} else if err != nil {
			return nil, err
		}
		if _, err := grants.Users(next, []string{"default"}); err != nil {
			return nil, refuse(CodeBadActor, "", "sign trust file %d: the bus could not use it: %v", next.Version, err)
		}
		session := make([]byte, 10)
		rand.Read(session)
		id := events.ID{Actor: subject.Actor, Session: hex.EncodeToString(session), N: 1}
		m, err := events.New(next.Origin, subject, id, time.Now(), last.Seq, next)
		if err != nil {
			return nil, err
		}
		m.Sign(next.Origin, string(root.Public()), root.Sign)
		_, err = d.Bus.AppendRaw(ctx, m)
		var conflict *bus.Conflict
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("publish trust file %d: %w", next.Version, err)
		}
		return &next, nil
	}
}

// ErrUnchanged is a change's word that the trust file in force says it already.
var ErrUnchanged = errors.New("nothing is to be changed")

func errNoTrust(found bool) error {
	if found {
		return nil
	}
	return errors.New("the stream holds none that can be believed")
}

// AddActor adds a line to a trust file.
func AddActor(t *events.TrustPublished, a events.Actor) error {
	if err := events.CheckName("actor", a.Actor); err != nil {
		return refuse(CodeBadActor, "", "%v", err)
	}
	if _, taken := t.Find(a.Actor); taken {
		return refuse(CodeActorExists, "choose another name, or revoke that one first", "add actor %s: the trust file has one of that name", a.Actor)
	}
	for _, p := range a.Pools {
		if err := events.CheckName("pool", p); err != nil {
			return refuse(CodeBadActor, "", "%v", err)
		}
	}
	if len(a.Roles) == 0 || slices.ContainsFunc(a.Roles, func(r events.Role) bool { return r == events.RoleRoot || !slices.Contains(events.Roles, r) }) {
		return refuse(CodeBadActor, "", "add actor %s: roles %v must be some of %v, and not root", a.Actor, a.Roles, events.Roles)
	}
	if err := ownKeys(t, a); err != nil {
		return err
	}
	t.Actors = append(t.Actors, a)
	return nil
}

// ownKeys checks that an actor's keys are keys and nobody else's: two names with one
// key would be two persons in a quorum.
func ownKeys(t *events.TrustPublished, a events.Actor) error {
	if a.Sign != "" {
		if _, err := keys.PublicKey(a.Sign).Bytes(); err != nil {
			return refuse(CodeBadActor, "use the public key that 'banksman actor add' makes", "trust actor %s: %v", a.Actor, err)
		}
	}
	for _, other := range t.Actors {
		if other.Actor != a.Actor && (other.Believes(a.Sign) || a.Login != "" && (a.Login == other.Login || a.Login == other.OldLogin)) {
			return refuse(CodeBadActor, "make keys of its own", "trust actor %s: %s has the same key", a.Actor, other.Actor)
		}
	}
	return nil
}

// RevokeActor removes a line from a trust file. What the actor signed before
// stays believable; nothing that it signs from here on is.
func RevokeActor(t *events.TrustPublished, actor string) error {
	i, err := lineOf(t, actor, "revoke")
	if err != nil {
		return err
	}
	t.Actors = slices.Delete(t.Actors, i, i+1)
	return nil
}
