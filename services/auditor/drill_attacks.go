package auditor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
)

// attack changes a host; it may point h at another folder.
type attack struct {
	name  string
	limit bool // no layer can find it
	do    func(ctx context.Context, d *drill, h *drillHost) error
}

// attacks is the table. The comment of each group says what the attacker has.
var attacks = []attack{
	// The auditor's folder, no key.
	{name: "edit one entry", do: func(_ context.Context, _ *drill, h *drillHost) error {
		return change(filepath.Join(h.log(), "entries.log"), func(b []byte) []byte {
			return bytes.Replace(b, []byte(".job-1.approved.gate"), []byte(".job-1.approved.gape"), 1)
		})
	}},
	{name: "edit an entry and repair the chain", do: rewritten(func(h []events.Stored) []events.Stored {
		h[5].Subject += "x"
		return h
	})},
	{name: "delete in the middle, repair the chain", do: rewritten(func(h []events.Stored) []events.Stored { return slices.Delete(h, 5, 6) })},
	{name: "insert a forged event, repair the chain", do: rewritten(func(h []events.Stored) []events.Stored { return slices.Insert(h, 5, h[2]) })},
	{name: "swap two events, repair the chain", do: rewritten(func(h []events.Stored) []events.Stored {
		h[5], h[6] = h[6], h[5]
		return h
	})},
	{name: "cut below the signed head", do: rewritten(func(h []events.Stored) []events.Stored { return h[:len(h)-4] })},
	{name: "cut, and put the older head back", do: func(_ context.Context, d *drill, h *drillHost) error {
		err := replace(d, h, d.site.signer, d.site.history[:d.early], d.early)
		return errors.Join(err, copyFile(d.old, *h, "checkpoint"))
	}},
	{name: "put the whole folder back", do: func(_ context.Context, d *drill, h *drillHost) error {
		return errors.Join(os.RemoveAll(h.log()), os.CopyFS(h.log(), os.DirFS(d.old.log())))
	}},
	{name: "put the whole host back, with its lock", do: func(_ context.Context, d *drill, h *drillHost) error {
		return errors.Join(os.RemoveAll(h.dir), os.CopyFS(h.dir, os.DirFS(d.old.dir)))
	}},
	{name: "rebuild without the log's key", do: func(_ context.Context, d *drill, h *drillHost) error {
		history := slices.Clone(d.site.history)
		return replace(d, h, d.site.stranger, slices.Delete(history, 5, 6), len(history)-1)
	}},

	// The auditor's host and the log's key.
	{name: "rebuild with the log's key", do: resigned(func(h []events.Stored) []events.Stored {
		h[5], h[6] = h[6], h[5]
		return h
	})},
	{name: "drop an event with the log's key, move the lock", do: resigned(func(h []events.Stored) []events.Stored { return slices.Delete(h, 5, 6) })},
	{name: "drop an event after the last witnessed head", do: func(_ context.Context, d *drill, h *drillHost) error {
		n := len(d.site.history)
		for i := range 3 {
			if err := d.site.propose(fmt.Sprintf("late-%d", i)); err != nil {
				return err
			}
		}
		return rebuilt(d, h, slices.Delete(slices.Clone(d.site.history), n, n+1), n)
	}},

	// The bus.
	{name: "forge an approval, honestly logged", do: func(ctx context.Context, d *drill, h *drillHost) error {
		thief, err := keys.GenerateSigner()
		if err != nil {
			return err
		}
		if err := d.site.propose("forged"); err != nil {
			return err
		}
		m, err := d.site.message("job.approved", "default", "forged", "gate", d.site.approval())
		if err != nil {
			return err
		}
		m.Sign(drillOrigin, string(d.site.signers["gate"].Public()), thief.Sign)
		d.site.store(m)
		return honest(ctx, d, h)
	}},
	{name: "replay an old signed approval", do: func(ctx context.Context, d *drill, h *drillHost) error {
		again := d.site.history[2]
		again.Seq, again.Time = uint64(len(d.site.history))+1, d.site.at
		d.site.history = append(d.site.history, again)
		return honest(ctx, d, h)
	}},
	{name: "swap a stored payload", do: func(_ context.Context, _ *drill, h *drillHost) error {
		return change(filepath.Join(h.log(), "raw.log"), func(b []byte) []byte {
			return bytes.Replace(b, []byte("/bin/true"), []byte("/bin/trux"), 1)
		})
	}},
	{name: "append a backdated event with the log's key", do: func(_ context.Context, d *drill, h *drillHost) error {
		n := len(d.site.history)
		if err := d.site.propose("backdated"); err != nil {
			return err
		}
		d.site.history[n].Time = d.site.history[0].Time.Add(-time.Hour)
		return rebuilt(d, h, d.site.history, n)
	}},

	// The moment before the seal. What was not sealed was not acted upon either.
	{name: "cut the tail that is not sealed", limit: true, do: func(_ context.Context, d *drill, h *drillHost) error {
		n := len(d.site.history)
		if err := d.site.propose("unsealed"); err != nil {
			return err
		}
		if err := rebuilt(d, h, d.site.history[:n], n); err != nil { // what is left after the cut
			return err
		}
		return copyFile(d.now, *h, "checkpoint")
	}},
}

// replace puts another log into the host and leaves its lock alone.
func replace(d *drill, h *drillHost, signer note.Signer, history []events.Stored, seals ...int) error {
	other, err := d.site.build(filepath.Base(h.dir)+"-made", signer, history, seals...)
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(h.log()), os.Rename(other.log(), h.log()))
}

// rebuilt puts another history, sealed with the log's key, and its lock into the host.
func rebuilt(d *drill, h *drillHost, history []events.Stored, seals ...int) (err error) {
	*h, err = d.site.build(filepath.Base(h.dir)+"-made", d.site.signer, history, append(seals, len(history))...)
	return err
}

// honest goes on as an auditor does: it logs, seals and lets the witness see.
func honest(ctx context.Context, d *drill, h *drillHost) error {
	if err := rebuilt(d, h, d.site.history); err != nil {
		return err
	}
	return d.site.cosign(ctx, *h)
}

// rewritten tells another history and keeps the honest checkpoint.
func rewritten(tell func([]events.Stored) []events.Stored) func(context.Context, *drill, *drillHost) error {
	return func(_ context.Context, d *drill, h *drillHost) error {
		history := tell(slices.Clone(d.site.history))
		return errors.Join(replace(d, h, d.site.stranger, history, len(history)), copyFile(d.now, *h, "checkpoint"))
	}
}

// resigned tells another history and signs it with the log's key.
func resigned(tell func([]events.Stored) []events.Stored) func(context.Context, *drill, *drillHost) error {
	return func(_ context.Context, d *drill, h *drillHost) error {
		return rebuilt(d, h, tell(slices.Clone(d.site.history)))
	}
}

// change edits a file; a change that changes nothing is an error of the drill's.
func change(path string, how func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after := how(bytes.Clone(b))
	if bytes.Equal(after, b) {
		return fmt.Errorf("%s was not changed", path)
	}
	return os.WriteFile(path, after, 0o600)
}

// copyFile takes a file of one log into another.
func copyFile(from, to drillHost, name string) error {
	b, err := os.ReadFile(filepath.Join(from.log(), name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to.log(), name), b, 0o600)
}
