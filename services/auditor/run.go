package auditor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/trust"
)

// Role is the auditor.
type Role struct {
	config Config
	wrap   func(Stream) Stream // lets tests lie about the stream; nil to believe it
}

// New makes the role with its defaults.
func New() *Role { return &Role{config: DefaultConfig()} }

// Name is "auditor".
func (r *Role) Name() string { return "auditor" }

// Power is the auditor's.
func (r *Role) Power() events.Role { return events.RoleAuditor }

// Section is [auditor].
func (r *Role) Section() config.Section { return config.Section{Name: "auditor", Into: &r.config} }

// Actor is the token that the auditor signs as.
func (r *Role) Actor() string { return r.config.ActorName }

// see is the stream as the role sees it.
func (r *Role) see(s Stream) Stream {
	if r.wrap != nil {
		return r.wrap(s)
	}
	return s
}

// Run audits until the context ends, one epoch after the other.
func (r *Role) Run(ctx context.Context, env *host.Env) error {
	for {
		var end *epochEnds
		if err := r.audit(ctx, env); !errors.As(err, &end) {
			return err
		}
	}
}

// audit audits one epoch. A *epochEnds says that the log of the next one is made.
func (r *Role) audit(ctx context.Context, env *host.Env) error {
	ring, err := newKeyring(env.Layout.CheckpointKey())
	if err != nil {
		return err
	}
	own, err := keys.LoadSigner(env.Layout.SignKey(env.Actor), nil)
	if err != nil {
		return err
	}
	witnesses, err := loadWitnesses(r.config.WitnessPolicy)
	if err != nil {
		return err
	}
	a := &auditor{
		witnesses: witnesses,
		config:    &r.config, stream: r.see(env.Bus), slog: env.Log, report: env.Report, keyring: ring, eraser: newEraser(env.Bus, env.Log),
		standing: env.Standing, layout: env.Layout, epoch: env.Layout.Epoch(), rouse: make(chan struct{}, 1),
	}
	a.outbox = newOutbox(env.Append, env.Actor, a.epoch)
	a.ledger = newLedger(trust.New(env.Site.Origin, keys.PublicKey(env.Site.RootKey)), nil, own.Public())
	defer a.close()
	if err = a.open(ctx, env); err == nil {
		err = a.serve(ctx, env)
	}
	var end *epochEnds
	if errors.As(err, &end) {
		if err = a.continueLog(ctx, env, end); errors.As(err, &end) {
			return err
		}
	}
	var f *Fault
	if errors.As(err, &f) && ctx.Err() == nil {
		return a.standStill(ctx, env, f)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// open opens log and index and brings both to where the log ends.
func (a *auditor) open(ctx context.Context, env *host.Env) error {
	var err error
	if a.log, err = a.openLog(ctx, env); err != nil {
		return err
	}
	if done := a.log.Recovery(); done != (tlog.Recovery{}) {
		a.slog.Warn("the audit log was recovered after a crash", "recovery", fmt.Sprintf("%+v", done))
	}
	if a.reader, err = tlog.OpenReader(env.Layout.AuditLogOf(a.epoch)); err != nil {
		return err
	}
	var why string
	if a.index, why, err = a.openIndex(env.Layout.AuditIndex()); err != nil {
		return err
	}
	if why != "" {
		a.slog.Info("the job index is made anew", "reason", why, "leaves", a.log.SealedSize())
		a.report(false, "making the job index anew")
	}
	a.ledger.index = a.index
	a.board = newJobBoard(env.Bus.Jobs(), a.index, env.Log, a.config.KVRecent)
	if err := a.resume(ctx); err != nil {
		return err
	}
	if err := a.recall(); err != nil {
		return err
	}
	if err := a.recallErasures(); err != nil {
		return err
	}
	if err := a.checkResume(ctx); err != nil {
		return err
	}
	if a.heads != nil && a.heads.fault != nil { // behind what is wrong with the stream, if that is
		return a.heads.fault
	}
	return nil
}

// recall sets the status to the head that the log ends with.
func (a *auditor) recall() error {
	to, err := positionAt(a.reader, a.log.SealedSize())
	if err != nil {
		return err
	}
	e, _, err := a.reader.Entry(to.Leaves - 1)
	if err != nil {
		return err
	}
	c, err := a.ledger.counts()
	a.state.change(func(s *status) {
		s.head, s.through, s.seen, s.covered = a.log.Head(), to.Through, a.log.LastSeq(), to.Through
		s.counts = c
		if !e.Time.IsZero() {
			s.sealedAt = e.Time // the seal itself is a little younger
		}
	})
	return err
}

// serve answers queries and folds.
func (a *auditor) serve(ctx context.Context, env *host.Env) error {
	defer env.Bus.Notify(func(connected bool) {
		if connected {
			a.board.refill()
		}
	})()
	stop, err := a.answer(ctx, env, "Answers questions about jobs and the audit log from sealed events")
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { a.board.run(ctx) })
	return a.work(ctx)
}

// answer serves queries, ready.<pool> for each pool of the bus.
func (a *auditor) answer(ctx context.Context, env *host.Env, description string) (stop func(), err error) {
	pools := host.DefaultBus()
	if err := config.Load(env.Layout.Config(), config.Section{Name: "bus", Into: &pools}); err != nil {
		return nil, err
	}
	return env.Bus.Serve(ctx, serviceName, env.Version, description, a.endpoints(pools.Pools))
}

// standStill closes dispatch and waits for the end. Queries about jobs go on where the
// index could be opened.
func (a *auditor) standStill(ctx context.Context, env *host.Env, f *Fault) error {
	a.state.fail(f)
	a.slog.Error("the auditor seals nothing more", "error", f)
	a.report(false, f.Error())
	for ctx.Err() == nil {
		err := a.closeDispatch(ctx, env.Standing, f)
		if err == nil {
			break
		}
		a.slog.Error("dispatch is not closed yet", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	if a.index != nil {
		stop, err := a.answer(ctx, env, "Answers questions about jobs; the audit log has an integrity fault")
		if err != nil {
			a.slog.Error("queries are not answered", "error", err)
		} else {
			defer stop()
		}
	}
	<-ctx.Done()
	return nil
}

func (a *auditor) close() {
	var errs []error
	if a.index != nil {
		errs = append(errs, a.index.Close())
	}
	if a.reader != nil {
		errs = append(errs, a.reader.Close())
	}
	if a.log != nil {
		errs = append(errs, a.log.Close())
	}
	if err := errors.Join(errs...); err != nil {
		a.slog.Error("the audit log was not closed cleanly", "error", err)
	}
}
