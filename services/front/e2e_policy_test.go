package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

const deployPolicy = `version = 1

[[rule]]
id = "no-force"
program = "git"
args = ["push"]
deny_args = ["--force", "-f"]
decision = "deny"
reason = "history is not rewritten"

[[rule]]
id = "texts"
program = ["sh", "bash"]
args = ["-c"]
decision = "allow"

[[rule]]
id = "version"
program = ["git", "true"]
flags = ["--version"]
decision = "allow"
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A policy is compared, tried and published, and decides from then on.
func TestPublishAPolicy(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	file := write(t, "next.toml", deployPolicy)
	before := s.Must(0, "policy", "show").Stdout

	var checked struct {
		Digest string `json:"digest"`
	}
	s.Must(0, "policy", "check", file, "--json").JSON(t, &checked)
	s.Must(78, "policy", "publish", write(t, "bad.toml", strings.Replace(deployPolicy, "deny_args", "deny_arg", 1)))
	s.Must(2, "policy", "publish", file, "--digest", "0000")
	if r := s.Must(0, "policy", "publish", file, "--dry-run"); !strings.Contains(r.Stderr, checked.Digest) || !strings.Contains(r.Stderr, "added   rule no-force") || !strings.Contains(r.Stderr, "removed rule shells") {
		t.Errorf("want digest and changes: %s", r)
	}
	if r := s.Must(0, "policy", "show"); r.Stdout != before {
		t.Errorf("a dry run published: %s", r)
	}
	r := s.Must(0, "policy", "publish", file, "--digest", checked.Digest[:12])
	if !strings.Contains(r.Stdout, checked.Digest[:16]) {
		t.Errorf("want what is in force: %s", r)
	}
	if r := s.Must(0, "policy", "show"); r.Stdout != deployPolicy {
		t.Errorf("another text is in force: %s", r)
	}
	s.Must(0, "policy", "publish", file)

	if r := s.Must(0, "run", "--", "sh", "-c", "cd /tmp && git --version | true"); r.Stdout != "" {
		t.Errorf("want nothing: %s", r)
	}
	for _, argv := range [][]string{
		{"git", "-C", "/tmp", "push", "origin", "-uf"}, {"sh", "-c", "git --version; git push --forc"}, {"sh", "-c", "git --version; uname"}, {"uname"},
	} {
		s.Must(77, append([]string{"run", "--"}, argv...)...)
	}
}

// A run of explain, test, diff and import needs no site.
func TestTryAPolicyWithoutASite(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	file := write(t, "next.toml", deployPolicy)
	r := s.Must(0, "policy", "explain", "--file", file, "--cwd", "/tmp", "--resolved", "/usr/bin/dash", "--", "sh", "-c", "git --version; uname")
	for _, want := range []string{"texts", "starts", "uname", `deny (unlisted): rule texts allows it, but it starts "uname"`} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("want %q: %s", want, r)
		}
	}
	s.Must(2, "policy", "explain", "--file", file, "--at", "noon", "--", "ls")
	expectations := "version = 1\n[[case]]\nargv = [\"git\", \"push\", \"-f\"]\ndecision = \"deny\"\nrule = \"no-force\"\n"
	s.Must(0, "policy", "test", "--file", file, write(t, "good.toml", expectations))
	bad := write(t, "bad.toml", expectations+"[[case]]\nargv = [\"uname\"]\ndecision = \"ask\"\n")
	if r := s.Must(1, "policy", "test", "--file", file, bad); !strings.Contains(r.Stdout, bad+":6: uname:") || !strings.Contains(r.Stdout, "1 of 2 hold") {
		t.Errorf("want which failed: %s", r)
	}
	other := write(t, "other.toml", strings.Replace(deployPolicy, `"-f"`, `"-f", "--mirror"`, 1))
	if r := s.Must(0, "policy", "diff", file, other); r.Stdout != `changed rule no-force: deny_args = ["--force","-f","--mirror"], which was ["--force","-f"]`+"\n" {
		t.Errorf("want one change: %s", r)
	}
	foreign := write(t, "agent-safe-policy.json", `{"version": 1, "allowed_commands": [{"program": "git", "args_prefix": ["status"]}], "allowed_working_roots": ["."]}`)
	r = s.Must(0, "policy", "import", foreign)
	if !strings.Contains(r.Stderr, "not the same: ") {
		t.Errorf("want what was lost: %s", r)
	}
	s.Must(0, "policy", "check", write(t, "imported.toml", r.Stdout))
	s.Must(1, "policy", "import", file)
}
