package front

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/person"
)

// What an actor's keys are for, as --key names it.
const (
	keySign       = "sign"
	keyLogin      = "login"
	keyCheckpoint = "checkpoint"
)

// rotation is one call of actor rotate.
type rotation struct {
	actor string
	uses  []string
	own   string // file with the passphrase of a person's new key
}

func (r *rotation) check() error {
	for _, use := range r.uses {
		if use != keySign && use != keyLogin && use != keyCheckpoint {
			return usage("choose from sign, login, checkpoint", "--key %q: there is no such key", use)
		}
	}
	return nil
}

func (r *rotation) has(use string) bool { return slices.Contains(r.uses, use) }

func (a *app) actorRotateCommand() *cobra.Command {
	var root rootFlags
	var r rotation
	cmd := &cobra.Command{
		Use: "rotate ACTOR", Short: "Give an actor a new key beside the old one, which counts until it is retired", Args: cobra.ExactArgs(1),
		Long: "Make a new key, trust it beside the one before, and put it in that one's place among the\nsite's keys, whose file is overwritten. Both count until 'banksman actor retire': restart\nwhatever holds the old key in between. A checkpoint key needs no restart; the auditor signs\nheads with both keys, so that who knows only one of them can verify. May be run again after\nan interruption.",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.actor = args[0]
			if err := r.check(); err != nil {
				return err
			}
			var l site.Layout
			err := a.amend(cmd.Context(), root, func(at site.Layout) (func(*events.TrustPublished) error, error) {
				l = at
				return r.prepare(a, l)
			})
			if err != nil {
				return err
			}
			return r.finish(l)
		},
	}
	root.add(cmd)
	cmd.Flags().StringSliceVar(&r.uses, "key", []string{keySign}, "which key: sign, login or checkpoint; repeat for more")
	cmd.Flags().StringVar(&r.own, "own-passphrase-file", "", "file whose first line guards a person's new signing key (default: ask on the terminal)")
	return cmd
}

// prepare makes the new keys beside the old ones, or finds those of a rotation that was
// interrupted, and returns what has to become of the trust file.
func (r *rotation) prepare(a *app, l site.Layout) (func(*events.TrustPublished) error, error) {
	var to person.NewKeys
	var vkey string
	var err error
	if r.has(keySign) {
		if to.Sign, err = r.nextSigner(a, l.SignKey(r.actor)); err != nil {
			return nil, err
		}
	}
	if r.has(keyLogin) {
		if to.Login, err = nextLogin(l.LoginKey(r.actor)); err != nil {
			return nil, err
		}
	}
	if r.has(keyCheckpoint) {
		if vkey, err = nextCheckpoint(l); err != nil {
			return nil, err
		}
	}
	return func(t *events.TrustPublished) error {
		var unchanged error
		if to != (person.NewKeys{}) {
			if err := person.RotateActor(t, r.actor, to); errors.Is(err, person.ErrUnchanged) {
				unchanged = err
			} else if err != nil {
				return err
			}
		}
		if vkey == "" {
			return unchanged
		}
		line, ok := t.Find(r.actor)
		if !ok || !line.Has(events.RoleAuditor) {
			return usage("name the auditor's actor", "--key checkpoint: %q is no auditor of the trust file", r.actor)
		}
		err := person.RotateCheckpoint(t, vkey)
		if errors.Is(err, person.ErrUnchanged) && unchanged == nil && to != (person.NewKeys{}) {
			return nil
		}
		return err
	}, nil
}

// nextSigner makes the signing key that is to replace one, guarded like that.
func (r *rotation) nextSigner(a *app, path string) (string, error) {
	next := keys.Next(path)
	if _, err := os.Lstat(next); err == nil {
		s, err := keys.LoadSigner(next, askPassphrase(r.own))
		if err != nil {
			return "", err
		}
		return string(s.Public()), nil
	}
	guarded, err := keys.Guarded(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may lie on another host
		return "", err
	}
	var passphrase []byte
	switch {
	case r.own != "":
		passphrase, err = keys.ReadPassphraseFile(r.own)
	case guarded:
		passphrase, err = keys.AskNewPassphrase(a.in, a.err)
	default:
		err = nil
	}
	if err != nil {
		return "", err
	}
	s, err := keys.GenerateSigner()
	if err != nil {
		return "", err
	}
	return string(s.Public()), keys.WriteSigner(next, s, passphrase)
}

// nextLogin makes the log-in key that is to replace one.
func nextLogin(path string) (string, error) {
	next := keys.Next(path)
	login, err := keys.LoadLogin(next)
	if errors.Is(err, fs.ErrNotExist) {
		if login, err = keys.GenerateLogin(); err == nil {
			err = keys.WriteLogin(next, login)
		}
	}
	if err != nil {
		return "", err
	}
	return login.Public(), nil
}

// nextCheckpoint puts a new checkpoint key before the one in the file, unless a second
// one is there already. The auditor signs with what the trust file lists, so the key may
// be there before it is trusted.
func nextCheckpoint(l site.Layout) (string, error) {
	all, err := keys.LoadCheckpointKeys(l.CheckpointKey())
	if err != nil {
		return "", err
	}
	if len(all) > 1 {
		return all[0].Verifier(), nil
	}
	k, err := keys.GenerateCheckpointKey(all[0].Signer().Name())
	if err != nil {
		return "", err
	}
	return k.Verifier(), keys.ReplaceCheckpointKeys(l.CheckpointKey(), []*keys.CheckpointKey{k, all[0]})
}

// finish puts the keys, which are trusted now, in their places.
func (r *rotation) finish(l site.Layout) error {
	for use, path := range map[string]string{keySign: l.SignKey(r.actor), keyLogin: l.LoginKey(r.actor)} {
		if !r.has(use) {
			continue
		}
		if err := keys.MoveSecret(keys.Next(path), path); err != nil {
			return fmt.Errorf("the new key is trusted, but is not in its place yet; run this again: %w", err)
		}
	}
	return nil
}

func (a *app) actorRetireCommand() *cobra.Command {
	var root rootFlags
	var checkpoint, force bool
	cmd := &cobra.Command{
		Use: "retire ACTOR", Short: "End a rotation: trust the old key no longer and destroy what is left of it", Args: cobra.ExactArgs(1),
		Long: "Publish a trust file without the old key. What it signed before stays believable, and its\npublic half stays in the log for ever; what it signs from here on is refused with the code\nretired_key. Refused while nothing on the stream is signed with the new key, because then\nsomething may still run that holds the old one.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !force {
				if err := a.inUse(cmd.Context(), args[0], checkpoint); err != nil {
					return err
				}
			}
			var done func() error
			err := a.amend(cmd.Context(), root, func(l site.Layout) (func(*events.TrustPublished) error, error) {
				if !checkpoint {
					return func(t *events.TrustPublished) error { return person.RetireKeys(t, args[0]) }, nil
				}
				all, err := keys.LoadCheckpointKeys(l.CheckpointKey())
				if err != nil {
					return nil, err
				}
				if len(all) < 2 {
					return nil, &person.Refusal{Code: person.CodeNotRotating, Next: "begin with 'banksman actor rotate " + args[0] + " --key checkpoint'",
						Why: fmt.Sprintf("retire the old checkpoint key: %s holds one key", l.CheckpointKey())}
				}
				done = func() error { return keys.ReplaceCheckpointKeys(l.CheckpointKey(), all[:1]) }
				return func(t *events.TrustPublished) error { return person.RetireCheckpoint(t, all[0].Verifier()) }, nil
			})
			if err != nil || done == nil {
				return err
			}
			return done()
		},
	}
	root.add(cmd)
	cmd.Flags().BoolVar(&checkpoint, "checkpoint", false, "the auditor's old checkpoint key instead of the actor's own")
	cmd.Flags().BoolVar(&force, "force", false, "although nothing on the stream is signed with the new key")
	return cmd
}

// inUse refuses unless the newest word of an actor, or the newest head of the log, is
// signed with the new key.
func (a *app) inUse(ctx context.Context, actor string, checkpoint bool) error {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	st := host.NewStanding(c, s, l)
	if err := st.Refresh(ctx); err != nil {
		return err
	}
	file := st.Book().Current()
	if file == nil {
		return errors.New("no trust file is in force")
	}
	line, ok := file.Find(actor)
	switch {
	case !ok || checkpoint && len(file.CheckpointKeys) < 2 || !checkpoint && line.OldSign == "":
		return nil // nothing that this could decide
	case checkpoint:
		ok, err = auditor.SealedBy(ctx, c, st.Book(), file.CheckpointKeys[0])
	default:
		ok, err = lastSignedBy(ctx, c, actor, line.Sign)
	}
	if err != nil || ok {
		return err
	}
	return &person.Refusal{Code: "new_key_unused", Next: "restart what acts as " + actor + " so that it reads the new key, or say --force",
		Why: fmt.Sprintf("retire the old key of %s: nothing on the stream is signed with the new one", actor)}
}

// lastSignedBy says whether the last event in an actor's name names a key.
func lastSignedBy(ctx context.Context, c *bus.Conn, actor, key string) (bool, error) {
	st, found, err := c.Last(ctx, events.PrefixStored+".*.*.*.*."+actor)
	if err != nil || !found {
		return false, err
	}
	text := strings.Join(st.Header[events.HeaderSignature], "")
	sig, err := events.ParseSignature(text)
	return err == nil && sig.Key == key, nil
}
