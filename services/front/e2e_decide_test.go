package front_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// policyFile writes a policy and returns its path.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(path, []byte("version = 1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asking is a policy that asks about some programs.
const asking = `
[[rule]]
id = "ask"
program = ["sh", "ls", "echo", "true", "sleep"]
decision = "ask"
[[rule]]
id = "two"
program = "uname"
decision = "ask"
quorum = 2
`

// propose asks for a command and waits until people are asked.
func propose(t *testing.T, s *lab.Site, args ...string) string {
	t.Helper()
	id := strings.TrimSpace(s.Must(0, append([]string{"propose"}, args...)...).Stdout)
	until(t, s, id, lifecycle.Pending)
	return id
}

// until waits for a job's status.
func until(t *testing.T, s *lab.Site, id string, want lifecycle.Status) view.Detail {
	t.Helper()
	var j view.Detail
	lab.Eventually(t, fmt.Sprintf("job %s to be %s", id, want), func() bool {
		j = show(t, s, id)
		if j.Status.Final() && j.Status != want {
			t.Fatalf("job %s is %s: %s, want %s", id, j.Status, j.Ending, want)
		}
		return j.Status == want && (j.Status != lifecycle.Pending || j.Resolution != nil && !j.Unresolved)
	})
	return j
}

// as is the site with another person at the desk.
func as(t *testing.T, s *lab.Site, actor string) *lab.Site {
	t.Helper()
	out := s.Outpost(actor)
	out.Set("person", "actor", fmt.Sprintf("%q", actor))
	return out
}

func TestCancelAndRevoke(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	t.Run("while it waits for people", func(t *testing.T) {
		id := propose(t, s, "--", "echo", "a")
		s.Must(0, "cancel", id, "--reason", "not needed")
		j := show(t, s, id)
		if j.Status != lifecycle.Cancelled || j.Ending != "cancelled by agent:local: not needed" {
			t.Errorf("%s, %q", j.Status, j.Ending)
		}
		s.Must(0, "cancel", id) // again changes nothing
		if after := show(t, s, id); after.LastSeq != j.LastSeq {
			t.Errorf("cancelling again stored something: %d, %d", j.LastSeq, after.LastSeq)
		}
		s.Must(1, "approve", id)
	})
	t.Run("while it runs", func(t *testing.T) {
		mark := filepath.Join(t.TempDir(), "pid")
		id := propose(t, s, "--", "sh", "-c", "trap '' TERM; sleep 600 & echo $$ > "+mark+"; while :; do sleep 1; done")
		s.Must(1, "revoke", id, "--reason", "too early to be revoked")
		s.Must(0, "approve", id)
		lab.Eventually(t, "the job to run", func() bool { _, err := os.Stat(mark); return err == nil })
		s.Must(1, "revoke", id, "--reason", "it runs")
		s.Must(0, "cancel", id, "--reason", "enough")
		j := until(t, s, id, lifecycle.Cancelled)
		if r := j.Receipt; r == nil || r.Survivors != 0 || len(r.Means) == 0 || r.Signal != "SIGKILL" {
			t.Errorf("receipt %+v", r)
		}
		if !strings.Contains(j.Ending, "agent:local: enough") {
			t.Errorf("ending %q", j.Ending)
		}
	})
	t.Run("by a person, of somebody else's job", func(t *testing.T) {
		id := proposeAs(t, s, "other", "echo", "b")
		s.Must(0, "cancel", id, "--reason", "not this one")
		if j := show(t, s, id); j.Status != lifecycle.Cancelled || strings.Contains(j.Ending, "agent:") {
			t.Errorf("%s, %q", j.Status, j.Ending)
		}
	})
	s.Must(1, "cancel", "no-such-job")
	s.Must(0, "audit", "verify")
}

// proposeAs proposes with a new token of another agent.
func proposeAs(t *testing.T, s *lab.Site, agent string, argv ...string) string {
	t.Helper()
	token := keys.NewToken()
	path := (site.Layout{Dir: s.Dir}).Token("agent", agent)
	if _, err := os.Stat(path); err != nil {
		if err := keys.WriteSecret(path, []byte(token+"\n")); err != nil {
			t.Fatal(err)
		}
	} else if text, err := keys.ReadSecret(path); err == nil {
		token = strings.TrimSpace(string(text))
	}
	other := *s
	other.Env = append(slices.Clone(s.Env), "BANKSMAN_TOKEN="+token)
	return propose(t, &other, append([]string{"--"}, argv...)...)
}

func TestRevokeBeforeTheStart(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	up := s.Up()
	mark := filepath.Join(t.TempDir(), "ran")
	id := propose(t, s, "--", "sh", "-c", "touch "+mark)
	up.Stop()
	up = s.Up("--without", "worker")
	s.Must(0, "approve", id)
	s.Must(2, "revoke", id)
	s.Must(0, "revoke", id, "--reason", "changed my mind")
	j := show(t, s, id)
	if j.Status != lifecycle.Revoked || !strings.Contains(j.Ending, "changed my mind") {
		t.Errorf("%s, %q", j.Status, j.Ending)
	}
	s.Must(0, "revoke", id, "--reason", "once more")
	up.Stop()
	s.Up()
	s.Must(0, "cancel", propose(t, s, "--", "echo", "later"))
	if after := show(t, s, id); after.Status != lifecycle.Revoked || after.LastSeq != j.LastSeq {
		t.Errorf("%s, last event %d, was %d", after.Status, after.LastSeq, j.LastSeq)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a revoked job ran")
	}
}

// A grant that is revoked between its use and the start starts nothing.
func TestGrantRevokedBeforeTheStart(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	up := s.Up()
	dir := t.TempDir()
	id := propose(t, s, "--cwd", dir, "--", "echo", "go")
	up.Stop()
	up = s.Up("--without", "approver")
	g := strings.TrimSpace(s.Must(0, "grant", "add", "--for", "1h", "--root", dir, "--reason", "a release", "--", "echo", "go").Stdout)
	late := strings.TrimSpace(s.Must(0, "propose", "--cwd", dir, "--", "echo", "go", "late").Stdout)
	lab.Eventually(t, "a worker to report", func() bool { return show(t, s, late).Resolution != nil })
	up.Stop()
	up = s.Up("--without", "worker")
	until(t, s, late, lifecycle.Approved)
	s.Must(0, "grant", "revoke", g, "--reason", "the release is off")
	up.Stop()
	s.Up()
	if j := until(t, s, late, lifecycle.DeadLetter); !strings.Contains(j.Ending, "the release is off") {
		t.Errorf("ending %q", j.Ending)
	}
	if j := show(t, s, id); j.Status != lifecycle.Pending {
		t.Errorf("a grant has approved what people were asked about before: %s", j.Status)
	}
}

// Two persons have to say yes, and the proposer is none of them.
func TestQuorumOfDistinctPersons(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	for _, name := range []string{"p2", "p3"} {
		s.Must(0, "actor", "add", name, "--role", "person")
	}
	second, third := as(t, s, "p2"), as(t, s, "p3")
	id := propose(t, s, "--", "uname")
	s.Must(0, "approve", id)
	if r := s.Must(1, "approve", "--json", id); !strings.Contains(r.Stderr, `"approved_twice"`) {
		t.Errorf("one person counted twice: %s", r)
	}
	if j := show(t, s, id); j.Status != lifecycle.Pending || j.Approved != 1 || j.Quorum != 2 {
		t.Errorf("%s with %d of %d", j.Status, j.Approved, j.Quorum)
	}
	second.Must(0, "approve", id)
	until(t, s, id, lifecycle.Succeeded)

	// What p3's own token proposes, p3 may not approve.
	token := keys.NewToken()
	if err := keys.WriteSecret((site.Layout{Dir: s.Dir}).Token("person", "p3"), []byte(token+"\n")); err != nil {
		t.Fatal(err)
	}
	own := *s
	own.Env = append(slices.Clone(s.Env), "BANKSMAN_TOKEN="+token)
	id = propose(t, &own, "--", "uname", "-s")
	if r := third.Must(1, "approve", "--json", id); !strings.Contains(r.Stderr, `"self_approval"`) {
		t.Errorf("want a coded refusal: %s", r)
	}
	s.Must(0, "approve", id)
	second.Must(0, "approve", id)
	until(t, s, id, lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
}

func TestDigestBatchAndComments(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	id := propose(t, s, "--", "echo", "one")
	digest := show(t, s, id).Resolution.Digest
	s.Must(0, "comment", id, "looks harmless")
	if r := s.Must(0, "show", id); !strings.Contains(r.Stdout, "looks harmless") || !strings.Contains(r.Stdout, digest) {
		t.Errorf("show leaves something out: %s", r)
	}
	for _, wrong := range []string{"0000000000", digest[:4]} {
		if r := s.Must(1, "approve", "--json", id, "--digest", wrong); !strings.Contains(r.Stderr, `"other_digest"`) {
			t.Errorf("want a coded refusal: %s", r)
		}
	}
	if r := s.Must(0, "approve", id, "--digest", digest[:12]); !strings.Contains(r.Stderr, digest[:16]) {
		t.Errorf("the digest is not shown: %s", r)
	}
	until(t, s, id, lifecycle.Succeeded)

	var ids []string
	for _, word := range []string{"a", "b", "c"} {
		ids = append(ids, propose(t, s, "--", "echo", word))
	}
	odd := propose(t, s, "--", "ls", "/")
	s.Must(2, "approve", ids[0], ids[1]) // no terminal to ask on
	r := s.Must(2, "approve", "--all-like", ids[0])
	if !strings.Contains(r.Stderr, "3 job(s) to approve") || strings.Contains(r.Stderr, odd) {
		t.Errorf("the list is wrong: %s", r)
	}
	if j := show(t, s, ids[2]); j.Status != lifecycle.Pending {
		t.Errorf("approved without a yes: %s", j.Status)
	}
	s.Must(0, "approve", "--all-like", ids[0], "--yes")
	for _, id := range ids {
		until(t, s, id, lifecycle.Succeeded)
	}
	if j := show(t, s, odd); j.Status != lifecycle.Pending {
		t.Errorf("another command was approved with them: %s", j.Status)
	}
}

// A rule may want each yes to name the digest of what would run, so that nobody
// approves a job unread: not by its id, not with others, not by a grant.
func TestARuleDemandsTheDigest(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking+"confirm = \"digest\"\n"))
	s.Up()
	s.Must(0, "actor", "add", "p2", "--role", "person")
	id := propose(t, s, "--", "uname")
	j := show(t, s, id)
	if r := s.Must(0, "show", id); !strings.Contains(r.Stdout, "--digest") {
		t.Errorf("show does not say that the digest is wanted: %s", r)
	}
	r := s.Must(1, "approve", "--json", id)
	if !strings.Contains(r.Stderr, `"needs_digest"`) || !strings.Contains(r.Stderr, "banksman show "+id) || strings.Contains(r.Stderr, j.Resolution.Digest[:8]) {
		t.Errorf("want the next step and not the digest itself: %s", r)
	}
	if r := s.Must(1, "approve", "--json", "--yes", "--all-like", id); !strings.Contains(r.Stderr, `"needs_digest"`) {
		t.Errorf("approved in a batch: %s", r)
	}
	s.Must(1, "approve", id, "--digest", "00000000")
	if after := show(t, s, id); after.LastSeq != j.LastSeq {
		t.Errorf("a refused yes was stored: event %d", after.LastSeq)
	}
	s.Must(0, "approve", id, "--digest", strings.ToUpper(j.Resolution.Digest[:8]))
	as(t, s, "p2").Must(0, "approve", id, "--digest", j.Resolution.Digest)
	until(t, s, id, lifecycle.Succeeded)
	s.Must(0, "audit", "verify")
}

// A person's no sticks to the same command of the same proposer until somebody
// lifts it.
func TestDenialSticks(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	id := propose(t, s, "--", "echo", "again")
	s.Must(0, "deny", id, "--reason", "not on production")
	r := s.Must(77, "propose", "--reason", "please", "--label", "n=2", "--", "echo", "again")
	if !strings.Contains(r.Stderr, "not on production") || !strings.Contains(r.Stderr, "deny --clear "+id) {
		t.Errorf("want the same reason and how to go on: %s", r)
	}
	for _, verb := range [][]string{{"assess"}, {"run", "--dry-run"}} {
		if r := s.Must(77, append(verb, "--", "echo", "again")...); !strings.Contains(r.Stdout+r.Stderr, "not on production") {
			t.Errorf("%v does not quote the one who said no: %s", verb, r)
		}
	}
	s.Must(0, "cancel", propose(t, s, "--", "echo", "another"))
	s.Must(0, "cancel", proposeAs(t, s, "other", "echo", "again"), "--reason", "a test") // another proposer was not told no
	s.Must(0, "deny", "--clear", id)
	s.Must(1, "deny", "--clear", id)
	once := propose(t, s, "--", "echo", "again")
	s.Must(0, "deny", once, "--once", "--reason", "not now")
	propose(t, s, "--", "echo", "again")
}

func TestEditAndRetry(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	old := propose(t, s, "--reason", "a release", "--", "echo", "wrong")
	id := strings.TrimSpace(s.Must(0, "edit", old, "--", "echo", "right").Stdout)
	if j := until(t, s, old, lifecycle.Cancelled); !strings.Contains(j.Ending, id) {
		t.Errorf("the old job does not name the new one: %q", j.Ending)
	}
	j := until(t, s, id, lifecycle.Pending)
	if j.Follows.Job != old || j.Follows.As != "edit" || len(j.Approvals) != 0 || j.Reason != "a release" {
		t.Errorf("%+v", j)
	}
	s.Must(1, "retry", id)
	s.Must(0, "approve", id)
	until(t, s, id, lifecycle.Succeeded)
	s.Must(1, "edit", id, "--", "echo", "late")
	next := strings.TrimSpace(s.Must(0, "retry", id).Stdout)
	if j := until(t, s, next, lifecycle.Pending); j.Follows.Job != id || j.Follows.As != "retry" || j.Argv[1] != "right" || len(j.Approvals) != 0 {
		t.Errorf("%+v", j)
	}
	if again := strings.TrimSpace(s.Must(0, "retry", id).Stdout); again != next {
		t.Errorf("the same retry is job %s and job %s", next, again)
	}
}

// grants of a site, used up and live.
func grantsOf(t *testing.T, s *lab.Site) (list []struct {
	Grant string `json:"grant"`
	State string `json:"state"`
	Used  []struct {
		Job string `json:"job"`
	} `json:"used"`
}) {
	t.Helper()
	var out struct {
		Grants []struct {
			Grant string `json:"grant"`
			State string `json:"state"`
			Used  []struct {
				Job string `json:"job"`
			} `json:"used"`
		} `json:"grants"`
	}
	s.Must(0, "grant", "ls", "--all", "--json").JSON(t, &out)
	return append(list, out.Grants...)
}

func TestGrants(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	dir := t.TempDir()
	s.Must(2, "grant", "add", "--root", dir, "--reason", "no end", "--", "echo")
	s.Must(1, "grant", "add", "--for", "240h", "--root", dir, "--reason", "too long", "--", "echo")
	s.Must(1, "grant", "add", "--for", "1h", "--root", "/", "--reason", "everywhere", "--", "echo")
	s.Must(1, "grant", "add", "--for", "1h", "--root", dir, "--reason", "anything at all", "--", "sh")
	g := strings.TrimSpace(s.Must(0, "grant", "add", "--for", "1h", "--uses", "2", "--root", dir, "--reason", "a release", "--", "echo", "go").Stdout)

	s.Must(0, "run", "--cwd", dir, "--", "echo", "go", "one")
	for _, argv := range [][]string{{"echo", "stop"}, {"echo", "go", "--force"}, {"ls"}} {
		s.Must(0, "cancel", propose(t, s, append([]string{"--cwd", dir, "--"}, argv...)...))
	}
	s.Must(0, "cancel", propose(t, s, "--cwd", t.TempDir(), "--", "echo", "go"))
	s.Must(77, "run", "--cwd", dir, "--", "rm", "x") // never what policy denies
	id := strings.TrimSpace(s.Must(0, "propose", "--cwd", dir, "--", "echo", "go", "two").Stdout)
	j := until(t, s, id, lifecycle.Succeeded)
	if len(j.Approvals) != 1 || j.Approvals[0].Basis != "grant" || j.Approvals[0].Grant != g {
		t.Errorf("approvals %+v", j.Approvals)
	}
	s.Must(0, "cancel", propose(t, s, "--cwd", dir, "--", "echo", "go", "three")) // used up
	list := grantsOf(t, s)
	if len(list) != 1 || list[0].State != "spent" || len(list[0].Used) != 2 || list[0].Used[1].Job != id {
		t.Errorf("%+v", list)
	}

	// Where two persons are asked for, one person's word in advance is not enough.
	s.Must(0, "grant", "add", "--for", "1h", "--root", dir, "--reason", "alone", "--", "uname")
	s.Must(0, "cancel", propose(t, s, "--cwd", dir, "--", "uname"))

	g = strings.TrimSpace(s.Must(0, "grant", "add", "--for", "1h", "--uses", "9", "--root", dir, "--reason", "a release", "--", "echo", "go").Stdout)
	s.Must(2, "grant", "revoke", g)
	s.Must(0, "grant", "revoke", g, "--reason", "over")
	s.Must(0, "grant", "revoke", g, "--reason", "over again")
	s.Must(0, "cancel", propose(t, s, "--cwd", dir, "--", "echo", "go", "four"))
	s.Must(0, "audit", "verify")
	noViolation(t, s)
}
