package front_test

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab"
)

// holding lists the files of a site that hold a text.
func holding(t *testing.T, s *lab.Site, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it may be going while we look
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Whatever part of a proposal holds a secret, it is refused before anything of it is
// stored, and neither the refusal nor any file of the site repeats it; what only
// looks like one at first sight is taken.
func TestSecretsInProposalsAreRefusedUnseen(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Up()
	const core = "FAKEq7Wm3Zx9Kc2Vb8Nf4T" // is in every one of them
	token := "ghp_" + core + "0123456789abcd"
	for name, args := range map[string][]string{
		"a token":                      {"--", "echo", token},
		"behind a word":                {"--", "echo", "export=" + token},
		"an option with equals":        {"--", "echo", "--auth-token=" + core},
		"an option":                    {"--", "echo", "--github-token", core},
		"a header":                     {"--", "echo", "-H", "Authorization: Bearer " + core},
		"a password in a URL":          {"--", "echo", "https://me:" + core + "@host.invalid/r"},
		"a setting":                    {"--", "echo", "DB_PASSWORD=" + core},
		"a text for a shell":           {"--", "sh", "-c", "PGPASSWORD=" + core + " psql"},
		"a private key":                {"--", "echo", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(core, 3) + "\n-----END PRIVATE KEY-----"},
		"the idempotency key":          {"--key", token, "--", "echo", "x"},
		"the reason":                   {"--reason", "with " + token, "--", "echo", "x"},
		"a label":                      {"--label", "api_token=" + core, "--", "echo", "x"},
		"an environment variable":      {"--env", "API_TOKEN=" + core, "--", "echo", "x"},
		"an innocent variable's value": {"--env", "NOTE=" + token, "--", "echo", "x"},
	} {
		r := s.Must(1, append([]string{"propose", "--json"}, args...)...)
		if !strings.Contains(r.Stderr, `"secret"`) || strings.Contains(r.Stdout+r.Stderr, core) {
			t.Errorf("%s: want a refusal that does not repeat it: %s", name, r)
		}
	}
	s.Must(1, "assess", "--", "echo", token)
	for _, args := range [][]string{
		{"echo", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}, {"echo", "--token-file", "/run/secrets/token"}, {"echo", "--password", "$PASSWORD"}, {"echo", "-p", "8080:80"}, {"echo", "the-rfc"},
	} {
		s.Must(0, "cancel", propose(t, s, append([]string{"--"}, args...)...))
	}
	lab.Eventually(t, "the refusals to be on record", func() bool {
		return strings.Count(s.Must(0, "ls", "--refused", "--limit", "100").Stdout, "secret") >= 5
	})
	if files := holding(t, s, core); len(files) > 0 {
		t.Errorf("the secret lies in %q", files)
	}
	s.Must(0, "audit", "verify")
}

// Output is cut after secrets were taken out of it, so that no end of a token that
// was too long to keep stays behind; and what this site calls a secret is one.
func TestSecretsInOutputLeaveNoRemains(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, "[[rule]]\nid = \"cat\"\nprogram = \"cat\"\nmax_output_bytes = 64\ndecision = \"allow\"\n"))
	s.Set("site", "secret_patterns", `['\bcorp-[0-9]{6}\b']`)
	s.Up()
	core := strings.Repeat("FAKEq7Wm3Zx9Kc2Vb8Nf4T", 12)
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("a line of a log\n", 50)+"token: ghp_"+core+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.Must(0, "run", "--", "cat", file)
	if strings.Contains(r.Stdout, "Nf4T") || !strings.Contains(r.Stdout, "redacted") {
		t.Errorf("want it replaced before it is cut: %s", r)
	}
	if files := holding(t, s, "Nf4TFAKE"); len(files) > 0 {
		t.Errorf("remains lie in %q", files)
	}
	s.Must(1, "propose", "--", "cat", "corp-778899")
	if err := os.WriteFile(file, []byte("id corp-778899.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.Must(0, "run", "--", "cat", file); r.Stdout != "id [redacted: pattern of this site].\n" {
		t.Errorf("want what the site calls a secret replaced: %s", r)
	}
	if files := holding(t, s, "corp-778899"); len(files) > 0 {
		t.Errorf("it lies in %q", files)
	}
}

// Arguments that are no text make no job and break no list; and an agent that asks
// without end hides nobody else's request.
func TestOddAndManyProposalsHideNothing(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary, "--policy", policyFile(t, asking))
	s.Set("proposer", "open_per_token", "40")
	s.Up()
	for _, odd := range []string{"\xff\xfe", "a\xc0\xafb", "\xed\xa0\x80"} {
		if r := s.Must(1, "propose", "--json", "--", "echo", odd); !strings.Contains(r.Stderr, `"invalid_text"`) {
			t.Errorf("%q: %s", odd, r)
		}
	}
	if list := inbox(t, s); len(list) != 0 {
		t.Errorf("odd arguments made jobs: %+v", list)
	}
	codes := map[string]int{}
	for n := range 60 {
		body, err := json.Marshal(agentapi.Proposal{Argv: []string{"echo", fmt.Sprint(n)}, Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		_, e := post(t, s, body)
		codes[e.Code]++
	}
	if codes["too_many_open"] == 0 || codes[""] > 45 {
		t.Errorf("the flood was answered with %v", codes)
	}
	id := proposeAs(t, s, "other", "echo", "the one that matters")
	list := inbox(t, s)
	if len(list) < 41 || list[0].Job != id {
		t.Errorf("the newest request is not the first of %d", len(list))
	}
	s.Must(0, "approve", id)
	until(t, s, id, lifecycle.Succeeded)
}
