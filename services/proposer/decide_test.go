package proposer

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/redact"
)

var local = events.Proposer{Kind: "agent", ID: "local"}

func detector(t testing.TB) *redact.Detector {
	t.Helper()
	d, err := redact.NewDetector()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// proposal is one that is in order; change says what is different.
func proposal(change ...func(*agentapi.Proposal)) agentapi.Proposal {
	p := agentapi.Proposal{Argv: []string{"make", "all"}, Cwd: "/src"}
	for _, f := range change {
		f(&p)
	}
	return p
}

func argument(text string) func(*agentapi.Proposal) {
	return func(p *agentapi.Proposal) { p.Argv = []string{"echo", "xq7" + text + "xq7"} }
}

func TestAdmitFillsDefaults(t *testing.T) {
	c := DefaultConfig()
	got, err := admit(&c, detector(t), proposal(), local)
	if err != nil || got.Pool != "default" || got.TimeoutS != 3600 || got.ExpiresS != 86400 || got.MaxAttempts != 1 || got.Proposer != local {
		t.Errorf("%+v, %v", got, err)
	}
	full := proposal(func(p *agentapi.Proposal) {
		p.Argv = []string{"sh", "-c", "a\n\tb 'c' \"d\" $e", "", "日本 🦺 \u200d"}
		p.Env, p.Pool, p.TimeoutS, p.MaxAttempts, p.RetrySafe = map[string]string{"A": "1"}, "gpu", 5, 10, true
		p.Reason, p.IdempotencyKey, p.Labels, p.ExpiresS = "because", "k", map[string]string{"a": "b"}, 7
	})
	got, err = admit(&c, detector(t), full, local)
	if err != nil || !slices.Equal(got.Argv, full.Argv) || !maps.Equal(got.Env, full.Env) || got.Pool != "gpu" || got.TimeoutS != 5 || got.MaxAttempts != 10 || !got.RetrySafe ||
		got.Reason != "because" || got.IdempotencyKey != "k" || !maps.Equal(got.Labels, full.Labels) || got.ExpiresS != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every refusal has a code, says what to do or what is right, and repeats
// nothing of the content, which is marked with xq7.
func TestAdmitRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*agentapi.Proposal)
		code   string
		place  string
	}{
		"no argument":           {func(p *agentapi.Proposal) { p.Argv = nil }, "no_command", ""},
		"no program":            {func(p *agentapi.Proposal) { p.Argv = []string{"", "xq7"} }, "no_command", ""},
		"too many arguments":    {func(p *agentapi.Proposal) { p.Argv = slices.Repeat([]string{"xq7"}, 1025) }, "too_long", "1025"},
		"too many bytes":        {argument(strings.Repeat("x", 140_000)), "too_long", "bytes"},
		"too many bytes in all": {func(p *agentapi.Proposal) { p.Reason = strings.Repeat("xq7", 50_000) }, "too_long", "bytes"},
		"NUL":                   {argument("\x00"), "control_character", "argument 1 holds the character U+0000 at byte 3"},
		"escape":                {argument("\x1b[2J"), "control_character", "U+001B"},
		"carriage return":       {argument("\r"), "control_character", "U+000D"},
		"C1 control":            {argument("\u009b"), "control_character", "U+009B"},
		"delete":                {argument("\x7f"), "control_character", "U+007F"},
		"bidi override":         {argument("\u202e"), "control_character", "U+202E"},
		"bidi isolate":          {argument("\u2066"), "control_character", "U+2066"},
		"bidi mark":             {argument("\u200f"), "control_character", "U+200F"},
		"line separator":        {argument("\u2028"), "control_character", "U+2028"},
		"byte order mark":       {argument("\ufeff"), "control_character", "U+FEFF"},
		"tag character":         {argument("\U000e0041"), "control_character", "U+E0041"},
		"invalid UTF-8":         {argument("\xff"), "invalid_text", ""},
		"control in cwd":        {func(p *agentapi.Proposal) { p.Cwd = "/xq7\x07" }, "control_character", "the working directory"},
		"control in reason":     {func(p *agentapi.Proposal) { p.Reason = "xq7\x07" }, "control_character", "the reason"},
		"control in key":        {func(p *agentapi.Proposal) { p.IdempotencyKey = "xq7\x07" }, "control_character", "the idempotency key"},
		"control in env":        {func(p *agentapi.Proposal) { p.Env = map[string]string{"A": "xq7\x07"} }, "control_character", "the value of environment variable 0"},
		"control in env name":   {func(p *agentapi.Proposal) { p.Env = map[string]string{"xq7\x07": ""} }, "control_character", "the name of environment variable 0"},
		"control in label":      {func(p *agentapi.Proposal) { p.Labels = map[string]string{"a": "b", "c": "xq7\x07"} }, "control_character", "the value of label 1"},
		"relative cwd":          {func(p *agentapi.Proposal) { p.Cwd = "xq7" }, "bad_cwd", ""},
		"no cwd":                {func(p *agentapi.Proposal) { p.Cwd = "" }, "bad_cwd", ""},
		"pool":                  {func(p *agentapi.Proposal) { p.Pool = "A.B" }, "bad_name", "pool"},
		"env name with =":       {func(p *agentapi.Proposal) { p.Env = map[string]string{"A=xq7": "1"} }, "bad_env", ""},
		"env name empty":        {func(p *agentapi.Proposal) { p.Env = map[string]string{"": "xq7"} }, "bad_env", ""},
		"env of banksman":       {func(p *agentapi.Proposal) { p.Env = map[string]string{"BANKSMAN_DIR": "xq7"} }, "bad_env", ""},
		"negative timeout":      {func(p *agentapi.Proposal) { p.TimeoutS = -1 }, "out_of_range", "timeout_s"},
		"endless timeout":       {func(p *agentapi.Proposal) { p.TimeoutS = 604801 }, "out_of_range", "timeout_s"},
		"endless request":       {func(p *agentapi.Proposal) { p.ExpiresS = 2592001 }, "out_of_range", "expires_s"},
		"too many attempts":     {func(p *agentapi.Proposal) { p.MaxAttempts = 11 }, "out_of_range", "max_attempts"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := DefaultConfig()
			_, err := admit(&cfg, detector(t), proposal(c.change), local)
			var e *agentapi.Error
			if !errors.As(err, &e) || e.Code != c.code || e.Status != 422 || !strings.Contains(e.Message, c.place) {
				t.Fatalf("%v, want code %q and %q", err, c.code, c.place)
			}
			if strings.Contains(e.Message+e.Next, "xq7") {
				t.Errorf("%q repeats the content", e.Message)
			}
		})
	}
}

// shown are secrets by their form, made up.
var shown = map[string]string{
	"AWS key":       "AKIA" + "QWERTYUIOPASDFGH",
	"GitHub token":  "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6",
	"Anthropic key": "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6aB3dE6gH9jK2mN5pQ8s-T1vW4AA",
	"own token":     "bmt_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6aB3dE6g",
	"private key":   "-----BEGIN " + "PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----",
	"URL":           "https://user:" + "hunter2hunter2@example.org/x",
	"header":        "Authorization: Bearer " + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7b",
}

func TestSecretsAreRefused(t *testing.T) {
	cfg, d := DefaultConfig(), detector(t)
	for what, text := range shown {
		for place, change := range map[string]func(*agentapi.Proposal){
			"argument 2":                          func(p *agentapi.Proposal) { p.Argv = []string{"run", "x", text} },
			"the reason":                          func(p *agentapi.Proposal) { p.Reason = "so: " + text },
			"the value of environment variable 0": func(p *agentapi.Proposal) { p.Env = map[string]string{"A": text} },
			"the value of label 0":                func(p *agentapi.Proposal) { p.Labels = map[string]string{"A": text} },
		} {
			_, err := admit(&cfg, d, proposal(change), local)
			var e *agentapi.Error
			if !errors.As(err, &e) || e.Code != "secret" || !strings.Contains(e.Message, place) || strings.Contains(e.Message+e.Next, text) {
				t.Errorf("%s in %s: %v", what, place, err)
			}
		}
	}
	for _, argv := range [][]string{{"tool", "--password", "Tr0ub4dor&3x"}, {"mysql", "-pTr0ub4dor&3x"}, {"curl", "-u", "me:Tr0ub4dor&3x", "https://example.org"}} {
		_, err := admit(&cfg, d, proposal(func(p *agentapi.Proposal) { p.Argv = argv }), local)
		var e *agentapi.Error
		if !errors.As(err, &e) || e.Code != "secret" || strings.Contains(e.Message, "Tr0ub4dor") {
			t.Errorf("%q: %v", argv, err)
		}
	}
	_, err := admit(&cfg, d, proposal(func(p *agentapi.Proposal) { p.Env = map[string]string{"DB_PASSWORD": "Tr0ub4dor&3x"} }), local)
	if err == nil {
		t.Error("a variable with a telling name was taken")
	}
	ordinary := [][]string{{"git", "log", "--format=%H"}, {"make", "-j4", "CC=clang"}, {"curl", "https://example.org/a@b"}, {"cp", "-p", "a", "b"}, {"sh", "-c", "echo $TOKEN"}}
	for _, argv := range ordinary {
		if _, err := admit(&cfg, d, proposal(func(p *agentapi.Proposal) { p.Argv = argv }), local); err != nil {
			t.Errorf("%q: %v", argv, err)
		}
	}
}

// Whatever is taken is stored as it was sent, and a reader can show it.
func TestAdmittedIsUnchanged(t *testing.T) {
	cfg, d := DefaultConfig(), detector(t)
	rapid.Check(t, func(t *rapid.T) {
		p := agentapi.Proposal{Argv: rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "argv"), Cwd: "/" + rapid.String().Draw(t, "cwd"), Reason: rapid.String().Draw(t, "reason")}
		got, err := admit(&cfg, d, p, local)
		if err != nil {
			return
		}
		if !slices.Equal(got.Argv, p.Argv) || got.Cwd != p.Cwd || got.Reason != p.Reason {
			t.Fatalf("%+v became %+v", p, got)
		}
		if slices.ContainsFunc(append(got.Argv, got.Cwd, got.Reason), func(s string) bool { return strings.ContainsAny(s, "\x00\x1b\r\u202e") }) {
			t.Fatalf("%+v was taken", p)
		}
	})
}

func TestJobID(t *testing.T) {
	p := &events.JobProposed{Proposer: local}
	a, err := jobID("site-a", p)
	b, _ := jobID("site-a", p)
	if err != nil || a == b || a > b {
		t.Errorf("ids without a key: %s then %s, %v", a, b, err)
	}
	id := func(origin string, from events.Proposer, key string) string {
		id, err := jobID(origin, &events.JobProposed{Proposer: from, IdempotencyKey: key})
		if err != nil || events.For("job.proposed", "default", id, "proposer").Valid() != nil {
			t.Errorf("%q, %v", id, err)
		}
		return id
	}
	base := id("site-a", local, "k")
	if base != id("site-a", local, "k") {
		t.Error("the same key is another job")
	}
	for what, other := range map[string]string{
		"another site": id("site-b", local, "k"), "another agent": id("site-a", events.Proposer{Kind: "agent", ID: "b"}, "k"),
		"a person": id("site-a", events.Proposer{Kind: "person", ID: "local"}, "k"), "another key": id("site-a", local, "k2"),
	} {
		if other == base {
			t.Errorf("%s has the same job", what)
		}
	}
}

func TestConfig(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"actor": func(c *Config) { c.ActorName = "A" }, "pool": func(c *Config) { c.Pool = "" }, "timeout_s": func(c *Config) { c.TimeoutS = 0 },
		"expires_s": func(c *Config) { c.ExpiresS = 0 }, "max_args": func(c *Config) { c.MaxArgs = 5000 }, "max_bytes": func(c *Config) { c.MaxBytes = 1 << 20 },
		"max_attempts": func(c *Config) { c.MaxAttempts = 0 }, "": func(*Config) {},
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it about %q", err, want)
		}
	}
}
