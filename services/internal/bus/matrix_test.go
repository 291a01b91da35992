package bus_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
)

// probe is an actor with a bare connection, who tries what this package would
// not.
type probe struct {
	actor events.Actor
	nc    *nats.Conn

	mu     sync.Mutex
	denied map[string]bool
}

var complaint = regexp.MustCompile(`(?i)violation for (publish|subscription) to "([^"]+)"`)

func (s *site) probe(name string) *probe {
	s.t.Helper()
	a, ok := s.opts.Trust.Find(name)
	if !ok {
		s.t.Fatalf("no actor %s", name)
	}
	p := &probe{actor: a, denied: map[string]bool{}}
	login := s.logins[name]
	nc, err := nats.Connect("", nats.InProcessServer(s.srv.InProcess()), nats.Nkey(login.Public(), login.SignNonce),
		nats.CustomInboxPrefix("_IB."+name), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if m := complaint.FindStringSubmatch(err.Error()); m != nil {
				p.mu.Lock()
				p.denied[strings.ToLower(m[1])+" "+m[2]] = true
				p.mu.Unlock()
			}
		}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	p.nc = nc
	return p
}

// settle returns after every complaint so far was recorded: complaints are
// handled in order, and the last one is provoked here.
func (p *probe) settle(t *testing.T) {
	t.Helper()
	mark := "nobody.may." + strings.ToLower(nats.NewInbox()[7:])
	if err := p.nc.Publish(mark, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.denied["publish "+mark]
	})
}

// eventually polls where only another goroutine's state tells.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come about in ten seconds")
		}
	}
}

// eventSubjects are every kind at own and other places under own and other
// names.
func eventSubjects(self string) []string {
	var out []string
	for _, d := range events.Catalog() {
		for _, scope := range []string{"default", "gpu", "site"} {
			for _, token := range []string{self, "p7k2", "worker2", "gate", "root", "nobody"} {
				out = append(out, events.For(d.Kind, scope, "matrix", token).String())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// apiCalls are the calls of the JetStream API without their prefix.
func apiCalls() []string {
	calls := []string{
		"INFO", "STREAM.NAMES", "STREAM.LIST", "ACCOUNT.PURGE.CORE", "META.LEADER.STEPDOWN", "SERVER.REMOVE",
	}
	for _, stream := range []string{grants.Stream, grants.OutputStream, grants.JobsStream, grants.HeadsStream} {
		for _, verb := range []string{"CREATE", "UPDATE", "DELETE", "INFO", "PURGE", "SNAPSHOT", "RESTORE", "MSG.GET", "MSG.DELETE", "PEER.REMOVE", "LEADER.STEPDOWN"} {
			calls = append(calls, "STREAM."+verb+"."+stream)
		}
		calls = append(calls, "DIRECT.GET."+stream, "DIRECT.GET."+stream+".bm.job.default.matrix.started.worker",
			"DIRECT.GET."+stream+".$KV.bm_jobs.matrix", "DIRECT.GET."+stream+".$KV.bm_heads.banksman/matrix/epoch-1", "DIRECT.GET."+stream+".bmo.default.matrix.1.0.worker",
			"DIRECT.GET."+stream+".bmo.default.matrix.1.0.worker2",
			"CONSUMER.NAMES."+stream, "CONSUMER.LIST."+stream, "CONSUMER.CREATE."+stream, "CONSUMER.CREATE."+stream+".x", "CONSUMER.CREATE."+stream+".x.bm.>")
		for _, d := range []string{"gate", "run-default", "run-gpu", "resolve-default", "resolve-gpu", "someones"} {
			for _, verb := range []string{"CREATE", "DURABLE.CREATE", "DELETE", "INFO", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN", "MSG.NEXT"} {
				calls = append(calls, "CONSUMER."+verb+"."+stream+"."+d)
			}
		}
	}
	return calls
}

// otherSubjects are everything else that somebody might try.
func otherSubjects(self string) []string {
	out := []string{
		"bml.bm.audit.site.epoch-1.sealed.auditor", "bmq.jobs.get", "bmq.jobs.list", "bmq.ready.default", "bmq.ready.gpu",
		"bmq.audit.status", "bmq.assess", "bmq.preview.default", "bmq.preview.gpu", "bmq.other", "bmdesk.CONSUMER.CREATE.BANKSMAN.x", "bmdesk.CONSUMER.DELETE.BANKSMAN.gate",
		"$KV.bm_jobs.matrix", "$KV.bm_heads.banksman/matrix/epoch-1", "$KV.other.matrix", "$O.bucket.M.x", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.CORE.INFO",
		"$SRV.PING", "$SRV.INFO.banksman-auditor", "_INBOX.x", "_R_.x.y", "$JS.FC.BANKSMAN.x.y", "$JSC.R.x", "$JS.EVENT.ADVISORY.API", "elsewhere",
	}
	for _, token := range []string{self, "worker2", "gate", "p7k2"} {
		out = append(out, "_IB."+token+"x.y") // an inbox of nobody
		for _, scope := range []string{"default", "gpu"} {
			out = append(out, "bml.hb."+scope+"."+token+".s1", "bmo."+scope+".matrix.1.0."+token)
		}
	}
	for _, d := range []string{"gate", "run-default", "run-gpu", "resolve-default", "someones"} {
		for _, stream := range []string{grants.Stream, grants.OutputStream} {
			out = append(out, "$JS.ACK."+stream+"."+d+".1.1.1.1.1", "$JS.ACK._._."+stream+"."+d+".1.1.1.1.1")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// oracle says what the table allows, in words of the table and without the
// code that renders it.
type oracle struct{ actor events.Actor }

func (o oracle) any(f func(grants.Grant) bool) bool {
	return slices.ContainsFunc(o.actor.Roles, func(r events.Role) bool {
		g, ok := grants.Of(r)
		return ok && f(g)
	})
}

func (o oracle) serves(scope string) bool {
	return !o.actor.Has(events.RoleWorker) || len(o.actor.Pools) == 0 || slices.Contains(o.actor.Pools, scope)
}

func (o oracle) pulls(durable string) bool {
	return o.any(func(g grants.Grant) bool {
		return slices.ContainsFunc(g.Pulls, func(p string) bool {
			name, _, ok := strings.Cut(p, "<pool>")
			if !ok {
				return p == durable
			}
			pool, ok := strings.CutPrefix(durable, name)
			return ok && o.serves(pool) && slices.Contains([]string{"default", "gpu"}, pool)
		})
	})
}

func (o oracle) publishes(subject string) bool {
	t := strings.Split(subject, ".")
	switch {
	case t[0] == "bm":
		s, err := events.ParseSubject(subject)
		if err != nil {
			return false
		}
		own := s.Actor == o.actor.Actor && o.serves(s.Scope) && o.actor.MayPublish(s.Kind())
		return own || o.any(func(g grants.Grant) bool { return slices.Contains(g.Carries, s.Kind()) })
	case strings.HasPrefix(subject, "CORE.API."):
		return o.calls(strings.TrimPrefix(subject, "CORE.API."))
	case strings.HasPrefix(subject, "HEADS.API.DIRECT.GET.KV_bm_heads.$KV.bm_heads."), strings.HasPrefix(subject, "$KV.bm_heads."):
		return o.any(func(g grants.Grant) bool { return g.KeepsHeads })
	case strings.HasPrefix(subject, "$JS.ACK."):
		stream, durable := t[len(t)-7], t[len(t)-6]
		pages := o.any(func(g grants.Grant) bool { return g.Pages })
		return stream == grants.Stream && (pages || o.pulls(durable))
	case t[0] == "bmq":
		return o.any(func(g grants.Grant) bool {
			return slices.ContainsFunc(g.Asks, func(q string) bool { return asksCover(o, q, strings.TrimPrefix(subject, "bmq.")) })
		})
	case strings.HasPrefix(subject, "bml.hb."):
		return t[3] == o.actor.Actor && o.serves(t[2]) && o.any(func(g grants.Grant) bool { return g.Beats })
	case t[0] == "bmo":
		return t[5] == o.actor.Actor && o.serves(t[1]) && o.any(func(g grants.Grant) bool { return g.WritesOutput })
	case strings.HasPrefix(subject, "$KV.bm_jobs."):
		return o.any(func(g grants.Grant) bool { return g.WritesJobs })
	case t[0] == "$SRV":
		return o.any(func(g grants.Grant) bool { return g.Discovers })
	}
	return false
}

func asksCover(o oracle, pattern, query string) bool {
	family, want, _ := strings.Cut(pattern, ".")
	gotFamily, got, _ := strings.Cut(query, ".")
	return family == gotFamily && (want == got || want == "*" || (want == "<pool>" && o.serves(got)))
}

func (o oracle) calls(call string) bool {
	switch {
	case call == "DIRECT.GET."+grants.Stream:
		return o.any(func(g grants.Grant) bool { return g.Reads })
	case call == "DIRECT.GET."+grants.OutputStream:
		return o.any(func(g grants.Grant) bool { return g.ReadsOutput })
	case strings.HasPrefix(call, "DIRECT.GET."+grants.OutputStream+".bmo."):
		return o.publishes(strings.TrimPrefix(call, "DIRECT.GET."+grants.OutputStream+"."))
	case strings.HasPrefix(call, "DIRECT.GET."+grants.JobsStream+"."), call == "STREAM.INFO."+grants.JobsStream:
		return o.any(func(g grants.Grant) bool { return g.ReadsJobs })
	case call == "STREAM.INFO."+grants.Stream:
		return o.any(func(g grants.Grant) bool { return g.ReadsState })
	case call == "STREAM.NAMES", call == "STREAM.LIST":
		return o.any(func(g grants.Grant) bool { return g.Pages })
	case strings.HasPrefix(call, "CONSUMER.MSG.NEXT."+grants.Stream+"."):
		durable := strings.TrimPrefix(call, "CONSUMER.MSG.NEXT."+grants.Stream+".")
		return o.pulls(durable) || (durable == "someones" && o.any(func(g grants.Grant) bool { return g.Pages }))
	case strings.HasPrefix(call, "CONSUMER.CREATE."+grants.Stream+"."), strings.HasPrefix(call, "CONSUMER.DELETE."+grants.Stream+"."):
		return o.any(func(g grants.Grant) bool { return g.Pages })
	}
	return false
}

// subscriptions and which of them the table allows.
func (o oracle) hears(subject string) bool {
	both := o.any(func(g grants.Grant) bool { return len(g.Hears) == 2 })
	switch subject {
	case "_IB." + o.actor.Actor + ".>", "_IB." + o.actor.Actor + ".x":
		return true
	case "bml.>", "bml.hb.>", "bml.hb.default.>":
		return both
	case "bml.bm.>", "bml.bm.audit.>":
		return o.any(func(g grants.Grant) bool { return len(g.Hears) > 0 })
	case "$SRV.>", "$SRV.PING":
		return o.any(func(g grants.Grant) bool { return len(g.Answers) > 0 })
	}
	query, ok := strings.CutPrefix(subject, "bmq.")
	return ok && o.any(func(g grants.Grant) bool {
		return slices.ContainsFunc(g.Answers, func(q string) bool {
			name, _, perPool := strings.Cut(q, "<pool>")
			pool, named := strings.CutPrefix(query, name)
			return q == query || perPool && named && o.serves(pool)
		})
	})
}

var subscriptions = []string{
	">", "*", "*.>", "bm.>", "bml.>", "bml.bm.>", "bml.bm.audit.>", "bml.hb.>", "bml.hb.default.>", "bmo.>", "bmq.>", "bmq.*.*",
	"bmq.jobs.get", "bmq.jobs.list", "bmq.ready.*", "bmq.audit.status", "bmq.assess", "bmq.preview.default", "bmq.preview.gpu", "bmdesk.>", "_IB.>", "_IB.*.x", "_R_.>", "_INBOX.>",
	"$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.>", "$SYS.>", "$SRV.>", "$SRV.PING", "$KV.>", "CORE.API.>", "HEADS.API.>",
	"_IB.gate.>", "_IB.worker.>", "_IB.worker2.>", "_IB.auditor.>", "_IB.p7k2.>", "_IB.reader.>", "_IB.monitor.>", "_IB.supervisor.>", "_IB.proposer.>",
}

func TestMatrix(t *testing.T) {
	s := newSite(t)
	admin := s.srv.Admin()
	stored := map[string]bool{}
	for _, a := range s.opts.Trust.Actors {
		if a.Login == "" || a.Has(events.RoleBus) {
			continue
		}
		o, p := oracle{a}, s.probe(a.Actor)
		candidates := append(eventSubjects(a.Actor), otherSubjects(a.Actor)...)
		for _, call := range apiCalls() {
			candidates = append(candidates, "$JS.API."+call, "CORE.API."+call, "HEADS.API."+call)
		}
		for _, c := range candidates {
			if err := p.nc.PublishRequest(c, "_IB."+a.Actor+".answer", []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range subscriptions {
			if _, err := p.nc.SubscribeSync(c); err != nil {
				t.Fatal(err)
			}
		}
		p.settle(t)
		for _, c := range candidates {
			allowed := !p.denied["publish "+c]
			if want := o.publishes(c); allowed != want {
				t.Errorf("%s publishes %s: allowed %t, the table says %t", a.Actor, c, allowed, want)
			}
			stored[c] = stored[c] || (allowed && strings.HasPrefix(c, "bm."))
		}
		for _, c := range subscriptions {
			if allowed, want := !p.denied["subscription "+c], o.hears(c); allowed != want {
				t.Errorf("%s subscribes to %s: allowed %t, the table says %t", a.Actor, c, allowed, want)
			}
		}
	}
	checkIntact(t, s)
	all, err := admin.Read(t.Context(), 1, "bm.>", 512)
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	for _, st := range all {
		if !stored[st.Subject] {
			t.Errorf("%s was stored although nobody was allowed to", st.Subject)
		}
	}
}

// checkIntact looks at everything that an attack might have changed.
func checkIntact(t *testing.T, s *site) {
	t.Helper()
	layout := bus.Layout{Pools: s.opts.Pools, MaxBytes: 64 << 20, OutputMaxBytes: 64 << 20}
	if err := s.srv.Admin().Provision(t.Context(), layout); err != nil {
		t.Errorf("after the attempts: %v", err)
	}
}
