package logserver_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/logserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRestartKeepsEverything(t *testing.T) {
	s := newSite(t, events.RoleProposer, events.RoleAuditor, events.RoleReader)
	o := s.options(t)
	srv := start(t, o)
	a := connect(t, s.config(srv, "proposer")).Appender(nobody{})
	for i := range 50 {
		subject := events.For("job.proposed", "default", fmt.Sprintf("job-%d", i), "proposer")
		if _, err := a.Append(t.Context(), subject, 0, events.JobProposed{Argv: []string{"/bin/true"}}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := connect(t, s.config(srv, "reader")).Read(t.Context(), 1, "bm.>", 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(t, s.config(srv, "auditor")).Jobs().Put(t.Context(), "job-1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	srv.Shutdown()

	srv = start(t, o)
	reader := connect(t, s.config(srv, "reader"))
	after, err := reader.Read(t.Context(), 1, "bm.>", 100)
	if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Fatalf("%d events before, %d after a restart, %v", len(before), len(after), err)
	}
	// The view of jobs lives in memory: it is made again, empty, and works.
	if _, found, err := reader.Jobs().Get(t.Context(), "job-1"); err != nil || found {
		t.Fatalf("job entry after a restart: %t, %v", found, err)
	}
	auditor := connect(t, s.config(srv, "auditor"))
	if err := auditor.Jobs().Put(t.Context(), "job-1", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if v, found, err := reader.Jobs().Get(t.Context(), "job-1"); err != nil || !found || string(v) != "y" {
		t.Fatalf("job entry after it was put again: %q, %v", v, err)
	}
	if err := srv.Healthy(); err != nil {
		t.Error(err)
	}
}

// admin is a bare connection with the rights of the bus.
func (s *site) admin(t *testing.T, srv *logserver.Server) jetstream.JetStream {
	t.Helper()
	login := s.logins["bus"]
	nc, err := nats.Connect("", nats.InProcessServer(srv.InProcess()), nats.Nkey(login.Public(), login.SignNonce))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// How old output may become follows the configuration at every start, and is no
// weakness of its stream.
func TestAgeOfOutputFollowsTheConfiguration(t *testing.T) {
	s := newSite(t, events.RoleBus)
	o := s.options(t)
	for _, o.OutputMaxAge = range []time.Duration{time.Hour, 2 * time.Hour, 0} {
		srv := start(t, o)
		st, err := s.admin(t, srv).Stream(t.Context(), grants.OutputStream)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.CachedInfo().Config.MaxAge; got != o.OutputMaxAge {
			t.Errorf("output is kept for %v, configured are %v", got, o.OutputMaxAge)
		}
		srv.Shutdown()
	}
}

// TestWeakerSettingsAreRefused changes one setting at a time behind the
// product's back and wants the next start to say which.
func TestWeakerSettingsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"max_msgs":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 },
		"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 },
		"allow_rollup_hdrs":    func(c *jetstream.StreamConfig) { c.DenyPurge, c.AllowRollup = false, true },
		"allow_msg_ttl":        func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"deny_delete":          func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"deny_purge":           func(c *jetstream.StreamConfig) { c.DenyPurge = false },
		"allow_direct":         func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"republish":            func(c *jetstream.StreamConfig) { c.RePublish = nil },
		"subjects":             func(c *jetstream.StreamConfig) { c.Subjects = []string{"bm.job.>"} },
		"sealed":               func(c *jetstream.StreamConfig) { c.Sealed = true },
		"storage":              func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"persist_mode":         func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"no_ack":               func(c *jetstream.StreamConfig) { c.NoAck = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, events.RoleBus)
			o := s.options(t)
			srv := start(t, o)
			js := s.admin(t, srv)
			st, err := js.Stream(t.Context(), grants.Stream)
			if err != nil {
				t.Fatal(err)
			}
			cfg := st.CachedInfo().Config
			change(&cfg)
			if _, err := js.UpdateStream(t.Context(), cfg); err != nil { // not an update: made anew
				if err := js.DeleteStream(t.Context(), grants.Stream); err != nil {
					t.Fatal(err)
				}
				sealed := cfg.Sealed
				cfg.Sealed = false
				if _, err := js.CreateStream(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				if sealed {
					t.Fatal("sealing is an update")
				}
			}
			err = srv.Admin().Provision(t.Context(), bus.Layout{Pools: o.Pools, MaxBytes: o.MaxBytes, OutputMaxBytes: o.MaxBytes})
			var weak *bus.WeakSetting
			if !errors.As(err, &weak) {
				t.Fatalf("provision: %v, want *WeakSetting", err)
			}
			if weak.Setting != name && !(name == "allow_rollup_hdrs" && weak.Setting == "deny_purge") && !(name == "sealed" && strings.HasPrefix(weak.Setting, "d")) {
				t.Errorf("provision names %s", weak.Setting)
			}
			if name == "storage" {
				return // a stream in memory is gone after the restart
			}
			srv.Shutdown()
			if again, err := logserver.Start(t.Context(), o); !errors.As(err, &weak) {
				again.Shutdown()
				t.Fatalf("start: %v, want *WeakSetting", err)
			}
		})
	}
}

func TestWeakerQueueIsRefused(t *testing.T) {
	s := newSite(t, events.RoleBus)
	o := s.options(t)
	srv := start(t, o)
	js := s.admin(t, srv)
	cons, err := js.Consumer(t.Context(), grants.Stream, "gate")
	if err != nil {
		t.Fatal(err)
	}
	cfg := cons.CachedInfo().Config
	cfg.MaxDeliver = 5
	if _, err := js.UpdateConsumer(t.Context(), grants.Stream, cfg); err != nil {
		t.Fatal(err)
	}
	srv.Shutdown()
	var weak *bus.WeakSetting
	if _, err := logserver.Start(t.Context(), o); !errors.As(err, &weak) || weak.Setting != "max_deliver" {
		t.Fatalf("start: %v, want *WeakSetting of max_deliver", err)
	}
}

// TestDamagedStoreIsRefused makes a hole in the stream while it is not
// protected, and protects it again. A hole behind the first events is the auditor's
// matter, and served.
func TestDamagedStoreIsRefused(t *testing.T) {
	for name, harm := range map[string]func(context.Context, jetstream.Stream) error{
		"deleted": func(ctx context.Context, st jetstream.Stream) error { return st.DeleteMsg(ctx, 2) },
		"purged": func(ctx context.Context, st jetstream.Stream) error {
			return st.Purge(ctx, jetstream.WithPurgeSequence(2))
		},
		"emptied": func(ctx context.Context, st jetstream.Stream) error { return st.Purge(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, events.RoleProposer, events.RoleBus)
			o := s.options(t)
			srv := start(t, o)
			js := s.admin(t, srv)
			st, err := js.Stream(t.Context(), grants.Stream)
			if err != nil {
				t.Fatal(err)
			}
			cfg := st.CachedInfo().Config
			if err := js.DeleteStream(t.Context(), grants.Stream); err != nil {
				t.Fatal(err)
			}
			open := cfg
			open.DenyDelete, open.DenyPurge = false, false
			if st, err = js.CreateStream(t.Context(), open); err != nil {
				t.Fatal(err)
			}
			a := connect(t, s.config(srv, "proposer")).Appender(nobody{})
			for i := range 3 {
				subject := events.For("job.proposed", "default", fmt.Sprintf("job-%d", i), "proposer")
				if _, err := a.Append(t.Context(), subject, 0, events.JobProposed{Argv: []string{"/bin/true"}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := harm(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			srv.Shutdown()
			again, err := logserver.Start(t.Context(), o)
			if err == nil {
				again.Shutdown()
			}
			var broken *bus.BrokenStream
			if name == "deleted" {
				if err != nil {
					t.Fatalf("start: %v, want a bus on which an admin can acknowledge the loss", err)
				}
			} else if !errors.As(err, &broken) {
				t.Fatalf("start: %v, want *BrokenStream", err)
			}
		})
	}
}

func TestStateCheck(t *testing.T) {
	for _, c := range []struct {
		state bus.State
		whole bool
	}{
		{bus.State{}, true},
		{bus.State{Messages: 3, First: 1, Last: 3}, true},
		{bus.State{Messages: 2, First: 2, Last: 3}, false},
		{bus.State{Messages: 0, First: 4, Last: 3}, false},
		{bus.State{Messages: 2, First: 1, Last: 3, Deleted: 1}, false},
		{bus.State{Messages: 2, First: 1, Last: 3}, false},
	} {
		if err := c.state.Check(); (err == nil) != c.whole {
			t.Errorf("%+v: %v", c.state, err)
		}
	}
}

func TestReloadAddsAndRevokes(t *testing.T) {
	s := newSite(t, events.RoleProposer, events.RoleWorker, events.RoleAuditor)
	srv := start(t, s.options(t))
	dropped := map[string]chan bool{}
	conns := map[string]*bus.Conn{}
	for _, name := range []string{"proposer", "worker", "auditor"} {
		c := connect(t, s.config(srv, name))
		changes := make(chan bool, 100)
		c.Notify(func(connected bool) { changes <- connected })
		conns[name], dropped[name] = c, changes
	}
	old := s.config(srv, "worker")
	s.remove("worker")
	s.add(t, "worker-b", events.RoleWorker)
	if err := srv.Reload(s.trust); err != nil {
		t.Fatal(err)
	}
	if connected := <-dropped["worker"]; connected {
		t.Error("the revoked worker was told that it is connected")
	}
	var refused *bus.LoginRefused
	if _, err := bus.Connect(t.Context(), old); !errors.As(err, &refused) {
		t.Errorf("the revoked worker logs in: %v", err)
	}
	b := connect(t, s.config(srv, "worker-b")).Appender(nobody{})
	if _, err := b.Append(t.Context(), events.For("job.started", "default", "job-1", "worker-b"), 0, events.JobStarted{}); err != nil {
		t.Errorf("the new worker cannot append: %v", err)
	}
	a := conns["proposer"].Appender(nobody{})
	if _, err := a.Append(t.Context(), events.For("job.proposed", "default", "job-2", "proposer"), 0, events.JobProposed{Argv: []string{"/bin/true"}}); err != nil {
		t.Errorf("the proposer cannot append after a reload: %v", err)
	}
	if state, err := conns["auditor"].StreamState(t.Context()); err != nil || state.Last != 2 {
		t.Errorf("state after a reload: %+v, %v", state, err)
	}
	if len(dropped["proposer"])+len(dropped["auditor"]) != 0 {
		t.Error("a reload dropped somebody who may stay")
	}
	other := s.trust
	other.Origin = "another-site"
	if err := srv.Reload(other); err == nil {
		t.Error("a trust file of another site was taken")
	}
}

func TestARevokedActorReturnsWithItsKey(t *testing.T) {
	s := newSite(t, events.RoleReader)
	full := s.trust
	srv := start(t, s.options(t))
	c := connect(t, s.config(srv, "reader"))
	changes := make(chan bool, 100)
	c.Notify(func(connected bool) { changes <- connected })
	s.remove("reader")
	if err := srv.Reload(s.trust); err != nil {
		t.Fatal(err)
	}
	if <-changes {
		t.Fatal("still connected")
	}
	if err := srv.Reload(full); err != nil {
		t.Fatal(err)
	}
	for connected := range changes {
		if connected {
			break
		}
	}
	if _, err := c.LastSeq(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestBusInABubble shows that the real server runs on simulated time.
func TestBusInABubble(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, events.RoleProposer, events.RoleGate)
		o := s.options(t)
		o.StoreDir, o.ConfFile = filepath.Join(dir, "store"), ""
		srv, err := logserver.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Shutdown()
		p, err := bus.Connect(t.Context(), s.config(srv, "proposer"))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		g, err := bus.Connect(t.Context(), s.config(srv, "gate"))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		subject := events.For("job.proposed", "default", "job-1", "proposer")
		if _, err := p.Appender(nobody{}).Append(t.Context(), subject, 0, events.JobProposed{Argv: []string{"/bin/true"}}); err != nil {
			t.Fatal(err)
		}
		// Not acknowledged, so it comes again after ack_wait; then given back
		// for an hour.
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		var at []time.Duration
		err = g.Consume(ctx, "gate", 1, func(ctx context.Context, d *bus.Delivery) {
			at = append(at, time.Since(begun).Round(time.Second))
			switch d.Redelivered {
			case 0:
			case 1:
				d.Nak(time.Hour)
			default:
				if err := d.Ack(ctx); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(at) != 3 || at[1] < 30*time.Second || at[1] > 35*time.Second || at[2]-at[1] < time.Hour {
			t.Errorf("delivered at %v", at)
		}
	})
}
