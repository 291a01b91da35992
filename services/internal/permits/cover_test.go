package permits_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/services/internal/permits"
	"github.com/banksman/banksman/services/internal/policy"
)

var env = policy.Env{DataDir: "/var/lib/banksman", Homes: []string{"/root"}}

// push is a grant for git push origin in /src.
func push() grant.Grant {
	return grant.Grant{ID: "g1", Status: grant.Live, GivenBy: "p7k2", GivenAt: time.Unix(0, 0), Given: &events.GrantGiven{
		Scope: events.GrantScope{Program: "git", Args: []string{"push", "origin"}, Roots: []string{"/src"}}, ValidS: 60, Uses: 1, Reason: "a release",
	}}
}

// job is a resolved job of agent:shop-12 and the request that it makes.
func job(cwd, program string, argv ...string) (lifecycle.Job, policy.Request) {
	j := lifecycle.Job{
		ID: "j1", Pool: "default",
		Proposal:   &events.JobProposed{Argv: argv, Cwd: cwd, Pool: "default", Proposer: events.Proposer{Kind: "agent", ID: "shop-12"}},
		Resolution: &events.JobResolved{Program: events.FileDigest{Path: program}, Cwd: cwd},
	}
	return j, policy.Request{Argv: argv, Cwd: cwd, RealCwd: cwd, ResolvedPath: program, Pool: "default", Proposer: "agent:shop-12", At: time.Unix(1, 0)}
}

func TestCovers(t *testing.T) {
	for name, c := range map[string]struct {
		want   bool
		change func(*grant.Grant)
		cwd    string
		path   string
		argv   string
	}{
		"as given":                  {want: true},
		"another operand":           {want: true, argv: "git push origin main"},
		"in a folder below":         {want: true, cwd: "/src/a"},
		"for this proposer":         {want: true, change: func(g *grant.Grant) { g.Given.Scope.Proposer = "agent:shop-12" }},
		"for this project":          {want: true, change: func(g *grant.Grant) { g.Given.Scope.Project = "shop" }},
		"with a listed option":      {want: true, argv: "git push origin --tags", change: func(g *grant.Grant) { g.Given.Scope.Flags = []string{"--tags"} }},
		"an option":                 {argv: "git push origin --force"},
		"an abbreviated option":     {argv: "git push origin --forc"},
		"an option before":          {argv: "git -c alias.push=!sh push origin"},
		"another subcommand":        {argv: "git reset"},
		"more than exact":           {argv: "git push origin main", change: func(g *grant.Grant) { g.Given.Scope.Exact = true }},
		"another program":           {argv: "gut push origin", path: "/usr/bin/gut"},
		"the name at another place": {path: "/src/git"},
		"elsewhere":                 {cwd: "/srv"},
		"a folder that begins so":   {cwd: "/srcs"},
		"another pool":              {change: func(g *grant.Grant) { g.Given.Scope.Pool = "gpu" }},
		"another proposer":          {change: func(g *grant.Grant) { g.Given.Scope.Proposer = "agent:shop-13" }},
		"another project":           {change: func(g *grant.Grant) { g.Given.Scope.Project = "shop-1" }},
		"nothing that was given":    {change: func(g *grant.Grant) { g.Given = nil }},
		"anywhere":                  {change: func(g *grant.Grant) { g.Given.Scope.Roots = []string{"/"} }},
	} {
		t.Run(name, func(t *testing.T) {
			g := push()
			if c.change != nil {
				c.change(&g)
			}
			or := func(v, def string) string {
				if v == "" {
					return def
				}
				return v
			}
			j, q := job(or(c.cwd, "/src"), or(c.path, "/usr/bin/git"), strings.Fields(or(c.argv, "git push origin"))...)
			if err := permits.Covers(g, j, q, env); (err == nil) != c.want {
				t.Errorf("covers: %v", err)
			}
		})
	}
}

func TestNobodyGrantsToThemselves(t *testing.T) {
	j, q := job("/src", "/usr/bin/git", "git", "push", "origin")
	j.Proposal.Proposer = events.Proposer{Kind: "person", ID: "p7k2"}
	if permits.Covers(push(), j, q, env) == nil {
		t.Error("the giver's own proposal is covered")
	}
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		want bool
		d    policy.Decision
	}{
		"asks one":       {true, policy.Decision{Verdict: policy.Ask, Quorum: 1}},
		"asks this one":  {true, policy.Decision{Verdict: policy.Ask, Quorum: 1, Approvers: []string{"p1", "p7k2"}}},
		"asks two":       {false, policy.Decision{Verdict: policy.Ask, Quorum: 2}},
		"asks another":   {false, policy.Decision{Verdict: policy.Ask, Quorum: 1, Approvers: []string{"p1"}}},
		"wants a digest": {false, policy.Decision{Verdict: policy.Ask, Quorum: 1, Confirm: true}},
		"denies":         {false, policy.Decision{Verdict: policy.Deny}},
		"allows already": {false, policy.Decision{Verdict: policy.Allow}},
	} {
		if permits.Answers(c.d, "p7k2") != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
}

func TestScopesThatAreNone(t *testing.T) {
	for name, s := range map[string]events.GrantScope{
		"no root":            {Program: "git"},
		"every folder":       {Program: "git", Roots: []string{"/"}},
		"the data folder":    {Program: "git", Roots: []string{"/var/lib"}},
		"a relative program": {Program: "./git", Roots: []string{"/src"}},
		"a shell":            {Program: "sh", Roots: []string{"/src"}},
		"a proposer unnamed": {Program: "git", Roots: []string{"/src"}, Proposer: "claude"},
		"a program in reach": {Program: "/src/deploy", Roots: []string{"/src"}},
	} {
		if permits.Check(s, env) == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// Whatever a scope holds, its text is a policy of one rule that says the same,
// or no policy: nothing in it becomes another key or another rule.
func TestTextHoldsNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := events.GrantScope{Program: rapid.String().Draw(t, "program"), Args: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "args"), Roots: []string{"/src" + rapid.String().Draw(t, "root")}}
		p, err := policy.Parse("of a grant", []byte(permits.Text(s)), env)
		if err != nil {
			return
		}
		j, q := job("/elsewhere", "/usr/bin/true", "true")
		g := push()
		g.Given.Scope = s
		if permits.Covers(g, j, q, env) == nil {
			t.Fatalf("scope %+v covers a job elsewhere", s)
		}
		if d := p.Static(policy.Request{Argv: []string{"no-such-program-at-all"}, Cwd: "/src"}); d.Verdict != policy.Deny {
			t.Fatalf("scope %+v became %s", s, permits.Text(s))
		}
	})
}
