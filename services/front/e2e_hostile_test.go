package front_test

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/localsock"
	"github.com/banksman/banksman/services/internal/site"
)

// post sends bytes to the proposer's door as the local agent.
func post(t *testing.T, s *lab.Site, body []byte) (int, agentapi.Error) {
	t.Helper()
	l := site.Layout{Dir: s.Dir}
	token, err := keys.ReadSecret(l.Token("agent", "local"))
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return localsock.Dial(ctx, l.ProposerSocket())
	}}}
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

// What looks like a secret is refused and told to nobody. A person who knows better
// lets exactly that pass, once; another proposal, another proposer and another time
// are refused as before.
func TestAPersonLetsPassWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	up := s.Up()
	const secret = "Tr0ub4dorAnd3Fables"
	args := []string{"--reason", "a test", "--", "echo", "--password=" + secret}
	r := s.Must(1, append([]string{"propose", "--json"}, args...)...)
	var refusal agentapi.Envelope
	if err := json.Unmarshal([]byte(r.Stderr), &refusal); err != nil || refusal.Error.Code != "secret" || !strings.Contains(refusal.Error.Next, "banksman waive") {
		t.Fatalf("want a refusal that names the way out: %s (%v)", r, err)
	}
	digest := refusal.Error.Content
	lab.Eventually(t, "the refusal to be on record", func() bool {
		return strings.Contains(s.Must(0, "ls", "--refused").Stdout, digest[:16])
	})
	s.Must(2, "waive", digest[:12])
	s.Must(1, "waive", digest[:4], "--reason", "too short")
	s.Must(1, "waive", strings.Repeat("0", 64), "--reason", "nothing of the kind")
	s.Must(1, append([]string{"propose"}, args...)...)
	s.Must(0, "waive", digest[:12], "--reason", "a password of the example in the manual")

	if r := s.Must(1, "propose", "--reason", "a test", "--", "echo", "--password="+secret, "more"); strings.Contains(r.String(), digest) {
		t.Errorf("another proposal has the same digest: %s", r)
	}
	token := keys.NewToken()
	if err := keys.WriteSecret((site.Layout{Dir: s.Dir}).Token("agent", "other"), []byte(token+"\n")); err != nil {
		t.Fatal(err)
	}
	other := *s
	other.Env = append(other.Env, "BANKSMAN_TOKEN="+token)
	other.Must(1, append([]string{"propose"}, args...)...)
	if r := s.Must(0, "events", "--json"); strings.Contains(r.Stdout, secret) {
		t.Error("the log holds what was refused")
	}

	id := propose(t, s, args...)
	if again := strings.TrimSpace(s.Must(0, append([]string{"propose"}, args...)...).Stdout); again != id {
		t.Errorf("one waiver made two jobs: %s and %s", id, again)
	}
	if r := s.Must(0, "show", id); !strings.Contains(r.Stdout, "a person says") {
		t.Errorf("the job does not say that it was let pass: %s", r)
	}
	s.Must(0, "approve", id)
	until(t, s, id, lifecycle.Succeeded)
	up.Stop()
	s.Up()
	s.Must(0, "waive", digest, "--reason", "once more") // the first one counts still
	if again := strings.TrimSpace(s.Must(0, append([]string{"propose"}, args...)...).Stdout); again != id {
		t.Errorf("a second waiver while the first one counts made another job: %s", again)
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
