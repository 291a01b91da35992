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
	"github.com/banksman/banksman/services/internal/keys"
)

// Amend publishes a new trust file: the one in force after a change, signed by
// the root key. Everything that reads the old one sees the new one from the next
// event on. The person only carries it; the root's signature is what counts.
func (d *Desk) Amend(ctx context.Context, root *keys.Signer, change func(*events.TrustPublished) error) (*events.TrustPublished, error) {
	if root.Public() != d.Standing.Book().Root() {
		return nil, refuse("wrong_root", "use the root key that init made", "sign a trust file: the key is not this site's root key")
	}
	for {
		if err := d.Standing.Refresh(ctx); err != nil {
			return nil, err
		}
		subject := events.For("trust.published", events.SiteScope, events.TrustID, string(events.RoleRoot))
		last, found, err := d.Bus.Last(ctx, subject.Filter())
		if err != nil || !found {
			return nil, fmt.Errorf("read the trust file in force: %w", errors.Join(err, errNoTrust(found)))
		}
		next := *d.Standing.Book().Current()
		next.Actors = slices.Clone(next.Actors)
		next.Version++
		if err := change(&next); err != nil {
			return nil, err
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

func errNoTrust(found bool) error {
	if found {
		return nil
	}
	return errors.New("the stream holds none")
}

// AddActor adds a line to a trust file.
func AddActor(t *events.TrustPublished, a events.Actor) error {
	if err := events.CheckName("actor", a.Actor); err != nil {
		return refuse("bad_name", "", "%v", err)
	}
	if _, taken := t.Find(a.Actor); taken {
		return refuse("actor_exists", "choose another name, or revoke that one first", "add actor %s: the trust file has one of that name", a.Actor)
	}
	for _, p := range a.Pools {
		if err := events.CheckName("pool", p); err != nil {
			return refuse("bad_name", "", "%v", err)
		}
	}
	t.Actors = append(t.Actors, a)
	return nil
}

// RevokeActor removes a line from a trust file. What the actor signed before
// stays believable; nothing that it signs from here on is.
func RevokeActor(t *events.TrustPublished, actor string) error {
	i := slices.IndexFunc(t.Actors, func(a events.Actor) bool { return a.Actor == actor })
	if i < 0 {
		return refuse("unknown_actor", "list them with 'banksman actor ls'", "revoke actor %s: the trust file has none of that name", actor)
	}
	t.Actors = slices.Delete(t.Actors, i, i+1)
	return nil
}
