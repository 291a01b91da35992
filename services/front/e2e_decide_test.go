package front_test

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
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
		if r := j.Receipt; r == nil || r.Survivors != 0 || !slices.Contains(r.Means, "SIGKILL") && len(r.Means) < 2 {
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
	s.Must(77, "assess", "--", "echo", "again")
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
	for _, g := range out.Grants {
		list = append(list, g)
	}
	return list
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
}

// post sends bytes to the proposer's door as the local agent.
func post(t *testing.T, s *lab.Site, body []byte) (int, agentapi.Error) {
	t.Helper()
	l := site.Layout{Dir: s.Dir}
	token, err := keys.ReadSecret(l.Token("agent", "local"))
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", l.ProposerSocket()) }}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://proposer/v1/jobs", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var e agentapi.Envelope
	if resp.StatusCode >= 300 {
		if err := json.UnmarshalRead(resp.Body, &e); err != nil || e.Error == nil {
			t.Fatalf("status %s without a reason: %v", resp.Status, err)
		}
		return resp.StatusCode, *e.Error
	}
	return resp.StatusCode, agentapi.Error{}
}

// resident is a process's resident memory in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skipf("memory of a process: %v", err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// Nothing that a proposer sends breaks a list, the inbox or the log, or makes
// the process grow; and what was refused is on record without its content.
func TestHostileProposals(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	up := s.Up()
	const secretish = "hostile-content-marker"
	argv := func(arg string) []byte {
		return []byte(`{"cwd":"/","argv":["echo","` + secretish + `","` + arg + `"]}`)
	}
	hostile := map[string][]byte{
		"a megabyte":        argv(strings.Repeat("a", 1<<20)),
		"three megabytes":   argv(strings.Repeat(`\u0041`, 1<<19)),
		"too many":          []byte(`{"cwd":"/","argv":["` + strings.Repeat(`x","`, 50000) + `"]}`),
		"NUL":               argv(`a\u0000b`),
		"invalid UTF-8":     argv("\xff\xfe"),
		"overlong UTF-8":    argv("\xc0\xaf"),
		"a lone surrogate":  argv(`\ud800`),
		"half a pair":       argv(`\udc00\ud800`),
		"bidi":              argv("\u202egpj.exe"),
		"an escape":         argv(`\u001b[2J`),
		"a byte-order mark": argv("\ufeff"),
		"100,000 deep":      []byte(`{"cwd":"/","labels":` + strings.Repeat(`{"a":`, 100000) + `1` + strings.Repeat(`}`, 100000) + `}`),
		"a deep array":      []byte(strings.Repeat(`[`, 100000)),
		"twice the member":  []byte(`{"cwd":"/","argv":["true"],"argv":["rm"]}`),
		"no command":        []byte(`{"cwd":"/","argv":[]}`),
		"an empty command":  []byte(`{"cwd":"/","argv":[""]}`),
		"not JSON":          []byte("GET / HTTP/1.1"),
		"nothing":           nil,
		"an unknown member": []byte(`{"cwd":"/","argv":["true"],"` + secretish + `":1}`),
		"a number too big":  []byte(`{"cwd":"/","argv":["true"],"timeout_s":1e999}`),
	}
	before := resident(t, up.Pid())
	for name, body := range hostile {
		for range 4 {
			if status, e := post(t, s, body); status < 400 || status >= 500 || strings.Contains(e.Message, secretish) || e.Code == "" {
				t.Errorf("%s: %d %s %.200q", name, status, e.Code, e.Message)
			}
		}
	}
	if grown := resident(t, up.Pid()) - before; grown > 96<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
	// What may be said may still look odd: it is kept as it is and shown escaped.
	id := propose(t, s, "--", "echo", "tab\tline\nfeed", "ünï", strings.Repeat("z", 5000)+"END")
	for _, verb := range [][]string{{"inbox"}, {"ls"}, {"show", id}, {"inbox", "--json"}, {"ls", "--refused"}} {
		if r := s.Must(0, verb...); strings.ContainsAny(r.Stdout, "\x00\x1b\u202e") {
			t.Errorf("%v prints a control character", verb)
		}
	}
	if r := s.Must(0, "show", id); !strings.Contains(r.Stdout, "END") {
		t.Error("the end of a long argument is not shown")
	}
	var refused struct {
		Refused []struct {
			Proposer string `json:"proposer"`
			Code     string `json:"code"`
			Count    int    `json:"count"`
		} `json:"refused"`
	}
	lab.Eventually(t, "the refusals to be on record", func() bool {
		s.Must(0, "ls", "--refused", "--limit", "1000", "--json").JSON(t, &refused)
		codes := map[string]bool{}
		for _, r := range refused.Refused {
			codes[r.Code] = true
		}
		return codes["too_long"] && codes["bad_request"] && codes["control_character"] && codes["no_command"]
	})
	up.Stop()
	s.Up()
	total := 0
	s.Must(0, "ls", "--refused", "--limit", "1000", "--json").JSON(t, &refused)
	for _, r := range refused.Refused {
		if r.Proposer != "agent:local" {
			t.Errorf("refused to %s", r.Proposer)
		}
		total += r.Count
	}
	if total != 4*len(hostile) || len(refused.Refused) >= total {
		t.Errorf("%d refusals in %d events, want %d summed up", total, len(refused.Refused), 4*len(hostile))
	}
	if r := s.Must(0, "events", "--json"); strings.Contains(strings.ReplaceAll(r.Stdout, id, ""), secretish) {
		t.Error("the log holds what was refused")
	}
	s.Must(0, "audit", "verify")
}

// A flooding agent is told to wait, others go on, and people decide.
func TestQuotas(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Set("proposer", "open_per_token", "3")
	s.Up()
	var ids []string
	for i := range 3 {
		ids = append(ids, propose(t, s, "--", "echo", fmt.Sprint(i)))
	}
	r := s.Must(75, "propose", "--json", "--", "echo", "more")
	if !strings.Contains(r.Stderr, `"too_many_open"`) || !strings.Contains(r.Stderr, `"retry_after_s"`) {
		t.Errorf("want a coded refusal with when to try again: %s", r)
	}
	s.Must(0, "cancel", proposeAs(t, s, "other", "echo", "mine"), "--reason", "a test")
	s.Must(0, "approve", ids[0])
	s.Must(0, "deny", ids[1], "--reason", "no")
	lab.Eventually(t, "room for another", func() bool { return s.Run("propose", "--", "echo", "more").Code == 0 })
}

func TestRateOfOneToken(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Set("proposer", "rate_per_minute", "1")
	s.Set("proposer", "rate_burst", "2")
	s.Up()
	first := propose(t, s, "--", "echo", "1")
	s.Must(77, "propose", "--", "rm", "2")
	r := s.Must(75, "propose", "--json", "--", "echo", "3")
	if !strings.Contains(r.Stderr, `"rate_limited"`) || !strings.Contains(r.Stderr, "try again in") {
		t.Errorf("want a coded refusal with when to try again: %s", r)
	}
	proposeAs(t, s, "other", "echo", "4")
	s.Must(0, "approve", first)
	until(t, s, first, lifecycle.Succeeded)
}
