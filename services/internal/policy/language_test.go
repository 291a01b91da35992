package policy

import (
	"slices"
	"testing"
	"time"
)

func TestHoursAndDays(t *testing.T) {
	day := goodRule + "hours_utc = \"08:00-18:00\"\ndays_utc = [\"mon\", \"fri\"]\n"
	night := goodRule + "hours_utc = \"22:00-06:00\"\ndays_utc = [\"fri\"]\n"
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 6, day, hour, minute, 0, 0, time.UTC) } // the 1st is a Monday
	tests := []struct {
		text string
		at   time.Time
		want Verdict
	}{
		{day, at(1, 8, 0), Ask},
		{day, at(1, 17, 59), Ask},
		{day, at(1, 18, 0), Deny},
		{day, at(1, 7, 59), Deny},
		{day, at(2, 9, 0), Deny},
		{day, at(5, 9, 0), Ask},
		{day, at(1, 10, 0).In(time.FixedZone("", 12*3600)), Ask},
		{night, at(5, 22, 0), Ask},
		{night, at(6, 5, 59), Ask},
		{night, at(6, 22, 30), Deny},
		{night, at(5, 5, 0), Deny},
		{day, time.Time{}, Deny},
	}
	for _, test := range tests {
		r := lsRequest()
		r.At = test.at
		if d := mustParse(t, test.text).Assess(r); d.Verdict != test.want {
			t.Errorf("at %v: %+v, want %s", test.at, d, test.want)
		}
	}
	r := unresolvedForm(lsRequest())
	if d := mustParse(t, day).Static(r); d.Verdict != Ask {
		t.Errorf("before the moment is known: %+v", d)
	}
	frozen := mustParse(t, goodRule+"[[rule]]\nid = \"frozen\"\nprogram = \"ls\"\ndays_utc = [\"sat\", \"sun\"]\ndecision = \"deny\"\nreason = \"nobody is there\"\nmatch = [[\"ls\"]]\n")
	for d, want := range map[int]Verdict{5: Ask, 6: Deny, 7: Deny} {
		r := lsRequest()
		r.At = at(d, 12, 0)
		if got := frozen.Assess(r); got.Verdict != want {
			t.Errorf("on the %d: %+v", d, got)
		}
	}
}

func TestEnvironmentValues(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\nprogram = \"ls\"\ndecision = \"allow\"\nenv = [\"LANG\", \"CI=1\", \"MODE=fast*\"]\n")
	tests := []struct {
		env  map[string]string
		want Verdict
	}{
		{map[string]string{"LANG": "x"}, Allow},
		{map[string]string{"CI": "1", "MODE": "faster"}, Allow},
		{map[string]string{"CI": "2"}, Deny},
		{map[string]string{"MODE": "slow"}, Deny},
		{map[string]string{"OTHER": ""}, Deny},
	}
	for _, test := range tests {
		r := lsRequest()
		r.Env = test.env
		for name := range test.env {
			r.EnvNames = append(r.EnvNames, name)
		}
		slices.Sort(r.EnvNames)
		if d := p.Assess(r); d.Verdict != test.want {
			t.Errorf("%v: %+v", test.env, d)
		}
	}
	r := lsRequest()
	r.EnvNames = []string{"CI"}
	if d := p.Assess(r); d.Verdict != Deny {
		t.Errorf("a value that nobody knows: %+v", d)
	}
	if d := p.Static(unresolvedForm(r)); d.Verdict != Allow {
		t.Errorf("a value that is not known yet: %+v", d)
	}
}

func TestWhoProposesAndWhoApproves(t *testing.T) {
	p := mustParse(t, goodRule+"proposers = [\"agent:local\", \"ann\"]\napprovers = [\"p7k2\", \"p3xx\"]\nquorum = 2\nmax_output_bytes = 4096\n")
	for proposer, want := range map[string]Verdict{
		"agent:local": Ask, "local": Deny, "person:local": Deny, "ann": Ask, "agent:ann": Ask, "person:ann": Ask, "": Deny, "agent:bob": Deny,
	} {
		r := lsRequest()
		r.Proposer = proposer
		d := p.Assess(r)
		if d.Verdict != want {
			t.Errorf("%q: %+v", proposer, d)
		}
		if want == Ask && (!slices.Equal(d.Approvers, []string{"p7k2", "p3xx"}) || d.Quorum != 2 || d.MaxOutput_bytes != 4096) {
			t.Errorf("%q: %+v", proposer, d)
		}
	}
}

func TestTheResolvedProgramMayHaveAnotherName(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"a\"\nprogram = \"xzcat\"\nresolved = [\"/usr/bin/xz\"]\ndecision = \"allow\"\n")
	for _, test := range []struct {
		argv0, real string
		want        Verdict
	}{
		{"xzcat", "/usr/bin/xz", Allow},
		{"xz", "/usr/bin/xz", Deny},
		{"xzcat", "/usr/bin/xzcat", Deny},
		{"xzcat", "/tmp/xz", Deny},
	} {
		r := Request{Argv: []string{test.argv0, "-f", "data"}[:1], Cwd: "/srv", RealCwd: "/srv", ResolvedPath: test.real}
		if d := p.Assess(r); d.Verdict != test.want {
			t.Errorf("%s as %s: %+v", test.argv0, test.real, d)
		}
	}
}

// TestShadowModeEnforcesDenyRulesOnly compares each decision with that of the same
// rules in force.
func TestShadowModeEnforcesDenyRulesOnly(t *testing.T) {
	rules := "[[rule]]\nid = \"a\"\nprogram = \"ls\"\nexact = true\nmax_timeout_s = 5\ndecision = \"allow\"\n" +
		"[[rule]]\nid = \"b\"\nprogram = \"cat\"\nquorum = 2\ndecision = \"ask\"\n" +
		"[[rule]]\nid = \"c\"\nprogram = \"rm\"\ndecision = \"deny\"\nreason = \"r\"\n"
	shadow, enforced := mustParse(t, "version = 1\nmode = \"shadow\"\n"+rules), mustParse(t, "version = 1\nmode = \"enforce\"\n"+rules)
	for name, want := range map[string]string{"ls": "allow", "ls -l": "deny", "cat x": "ask", "frobnicate": "deny"} {
		r := lsRequest()
		r.Argv = splitWord(name)
		r.ResolvedPath = "/usr/bin/" + r.Argv[0]
		d, in := shadow.Assess(r), enforced.Assess(r)
		if d.Verdict != Ask || d.Shadow != want || in.Verdict.String() != want || in.Shadow != "" || d.Quorum < 1 || d.Reason == "" {
			t.Errorf("%s: shadow %+v, enforced %+v", name, d, in)
		}
		checkExplained(t, shadow, r, d)
	}
	for _, change := range []func(*Request){
		func(r *Request) { r.Argv = []string{"rm", "x"} },
		func(r *Request) { r.Argv = []string{"sh", "-c", "ls; rm x"} },
		func(r *Request) { r.Cwd = "/var/lib/banksman" },
		func(r *Request) { r.Argv = []string{"ls", "\x00"} },
		func(r *Request) { r.ResolvedPath = "" },
	} {
		r := lsRequest()
		change(&r)
		if d := shadow.Assess(r); d.Verdict != Deny || d.Shadow != "" {
			t.Errorf("%+v: %+v", r, d)
		}
	}
}

func TestADigestThatIsDemandedInsideATextIsDemandedOfAll(t *testing.T) {
	deploy := "[[rule]]\nid = \"deploy\"\nprogram = \"deploy\"\nconfirm = \"digest\"\ndecision = \"ask\"\n"
	for _, shell := range []string{"ask", "allow"} {
		p := mustParse(t, "version = 1\n[[rule]]\nid = \"sh\"\nprogram = \"sh\"\nargs = [\"-c\"]\ndecision = \""+shell+"\"\n"+deploy)
		for text, want := range map[string]bool{"echo now; deploy": true, "echo now": false} {
			r := Request{Argv: []string{"sh", "-c", text}, Cwd: "/srv", RealCwd: "/srv", ResolvedPath: "/usr/bin/dash"}
			if d := p.Assess(r); d.Confirm != want || want && d.Verdict != Ask {
				t.Errorf("%s under a shell that is %sed: %+v", text, shell, d)
			}
		}
	}
}

func TestAQuorumInsideATextCounts(t *testing.T) {
	p := mustParse(t, "version = 1\n[[rule]]\nid = \"sh\"\nprogram = \"sh\"\ndecision = \"ask\"\napprovers = [\"pa\", \"pb\", \"pc\"]\nmax_attempts = 3\n"+
		"[[rule]]\nid = \"deploy\"\nprogram = \"deploy\"\nquorum = 2\napprovers = [\"pb\", \"pc\", \"pd\"]\nmax_timeout_s = 60\ndecision = \"ask\"\n")
	r := Request{Argv: []string{"sh", "-c", "echo now; deploy"}, Cwd: "/srv", RealCwd: "/srv", ResolvedPath: "/usr/bin/dash", Timeout_s: 30}
	d := p.Assess(r)
	if d.Verdict != Ask || d.Quorum != 2 || d.MaxTimeout_s != 60 || d.MaxAttempts != 3 || !slices.Equal(d.Approvers, []string{"pb", "pc"}) {
		t.Errorf("%+v", d)
	}
	r.Timeout_s = 61
	if d := p.Assess(r); d.Verdict != Deny || d.Code != CodeOverCeiling {
		t.Errorf("above the ceiling of a command inside: %+v", d)
	}

	apart := mustParse(t, "version = 1\n[[rule]]\nid = \"sh\"\nprogram = \"sh\"\ndecision = \"ask\"\napprovers = [\"pa\"]\n"+
		"[[rule]]\nid = \"deploy\"\nprogram = \"deploy\"\napprovers = [\"pb\"]\ndecision = \"ask\"\n")
	r.Timeout_s = 0
	if d := apart.Assess(r); d.Verdict != Deny || d.Code != CodeDynamic || d.Instead == "" {
		t.Errorf("nobody may approve both: %+v", d)
	}
	if d := apart.Static(unresolvedForm(r)); d.Verdict != Ask {
		t.Errorf("nobody may approve both, before resolution: %+v", d)
	}
}
