package person

import (
	"slices"

	"github.com/banksman/banksman/events"
)

// Codes of rotations that are refused.
const (
	CodeRotating    = "already_rotating"
	CodeNotRotating = "not_rotating"
)

// NewKeys are the public halves of what an actor changes to; empty for what stays.
type NewKeys struct{ Sign, Login string }

// RotateActor gives new keys to an actor. Those before stay good until
// [RetireKeys]; only one rotation can be open, so that two keys count at most.
func RotateActor(t *events.TrustPublished, actor string, to NewKeys) error {
	i, err := lineOf(t, actor, "rotate")
	if err != nil {
		return err
	}
	a := t.Actors[i]
	signs, logsIn := to.Sign != "" && to.Sign != a.Sign, to.Login != "" && to.Login != a.Login
	switch {
	case !signs && !logsIn:
		return ErrUnchanged
	case signs && a.Sign == "" || logsIn && a.Login == "":
		return refuse(CodeBadActor, "see 'banksman actor ls'", "rotate actor %s: it has no key of this use", actor)
	case signs && a.OldSign != "" || logsIn && a.OldLogin != "":
		return refuse(CodeRotating, "end that one first with 'banksman actor retire "+actor+"'", "rotate actor %s: trust file %d still lists the key of an earlier rotation", actor, t.Version-1)
	}
	if signs {
		a.Sign, a.OldSign = to.Sign, a.Sign
	}
	if logsIn {
		a.Login, a.OldLogin = to.Login, a.Login
	}
	if err := ownKeys(t, a); err != nil {
		return err
	}
	t.Actors[i] = a
	return nil
}

// RetireKeys ends an actor's rotation: what its old key signs from here on is not
// believed, what it signed before stays.
func RetireKeys(t *events.TrustPublished, actor string) error {
	i, err := lineOf(t, actor, "retire the old key of")
	if err != nil {
		return err
	}
	if t.Actors[i].OldSign == "" && t.Actors[i].OldLogin == "" {
		return refuse(CodeNotRotating, "begin with 'banksman actor rotate "+actor+"'", "retire the old key of actor %s: it has none", actor)
	}
	t.Actors[i].OldSign, t.Actors[i].OldLogin = "", ""
	return nil
}

func lineOf(t *events.TrustPublished, actor, what string) (int, error) {
	i := slices.IndexFunc(t.Actors, func(a events.Actor) bool { return a.Actor == actor })
	if i < 0 {
		return 0, refuse(CodeUnknownActor, "list them with 'banksman actor ls'", "%s actor %s: the trust file has none of that name", what, actor)
	}
	return i, nil
}

// RotateCheckpoint lets a further key sign the log's heads.
func RotateCheckpoint(t *events.TrustPublished, vkey string) error {
	switch {
	case slices.Contains(t.CheckpointKeys, vkey):
		return ErrUnchanged
	case len(t.CheckpointKeys) > 1:
		return refuse(CodeRotating, "end that rotation first with 'banksman actor retire'", "rotate the checkpoint key: trust file %d lists %d already", t.Version-1, len(t.CheckpointKeys))
	}
	t.CheckpointKeys = append([]string{vkey}, t.CheckpointKeys...)
	return nil
}

// RetireCheckpoint leaves one key that may sign the log's heads. Heads of before stay
// good, because each is judged by the trust file of its own time.
func RetireCheckpoint(t *events.TrustPublished, keep string) error {
	switch {
	case !slices.Contains(t.CheckpointKeys, keep):
		return refuse(CodeNotRotating, "begin with 'banksman actor rotate'", "retire the old checkpoint key: trust file %d does not list the new one", t.Version-1)
	case len(t.CheckpointKeys) == 1:
		return ErrUnchanged
	}
	t.CheckpointKeys = []string{keep}
	return nil
}
