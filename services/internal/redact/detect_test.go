package redact

import (
	"strings"
	"testing"
)

func TestDetectorFindsSecretsInCommands(t *testing.T) {
	d, err := NewDetector(`\bcorp-[0-9]{6}\b`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		argv string
		at   int // 0 for none
	}{
		{"curl -H|Authorization: Bearer pat-FAKE-0123456789", 1},
		{"git|clone|https://x:s3cr3tpass@host.invalid/r", 2},
		{"git|-c|http.extraheader=Authorization: Basic eC1hY2Nlc3MtdG9rZW46cGF0", 2},
		{"tool|--auth-token|a1b2c3d4e5f6g7h8", 2}, {"tool|--github-token=a1b2c3d4e5f6g7h8", 1}, {"tool|--passwd|correcthorse", 2},
		{"tool|--api_key|a1b2c3d4e5f6g7h8", 2}, {"tool|--apikey|a1b2c3d4e5f6g7h8", 2}, {"tool|--access-key|a1b2c3d4e5f6g7h8", 2},
		{"tool|--password=hunter2", 1}, {"tool|--credential|a1b2c3d4e5f6", 2}, {"tool|--private-key|a1b2c3d4e5f6g7h8", 2},
		{"mysql|-psecret|db", 1}, {"/usr/bin/sshpass|-p|w0rd5|ssh|host", 2}, {"docker|login|-u|me|-p|w0rd5", 5}, {"env|X=1|redis-cli|-a|w0rd5", 4},
		{"curl|-u|me:w0rd5|https://host.invalid", 2}, {"openssl|rsa|-passin|pass:w0rd5", 3}, {"sh|-c|mysql --password=hunter2 -e 'select 1'", 2},
		{"echo|corp-123456", 1}, {"export|DB_PASSWORD=correcthorse", 1}, {"printf|" + pem("\n"), 1},

		{"docker|run|-p|8080:80|image", 0}, {"mkdir|-p|a/b", 0}, {"git|log|-p|4b825dc642cb6eb9a060e54bf8d69288fbee4904", 0}, {"curl|-u|me|https://host.invalid", 0},
		{"tool|--token|$TOKEN", 0}, {"tool|--token-file|/run/secrets/token", 0}, {"tool|--password-stdin", 0}, {"tool|--password|--verbose", 0},
		{"tool|--secret|id=npmrc,src=.npmrc", 0}, {"git|commit|-m|fix: token: format, session: expired", 0}, {"tool|--private-key|/etc/ssl/key.pem", 0},
		{"grep|-r|password|.", 0}, {"tool|--max-tokens|100000", 0}, {"kubectl|create|secret|generic|my-secret-2024", 0}, {"openssl|rsa|-passin|env:PW", 0},
		{"python3|-c|import secrets; print(secrets.token_hex(32))", 0}, {"pip|install|scikit-learn==1.2.3", 0}, {"echo|corp-12345", 0},
	} {
		argv := strings.Split(c.argv, "|")
		i, rule := d.Argv(argv)
		if i != c.at || (rule != "") != (c.at != 0) {
			t.Errorf("%q: argument %d, rule %q; want %d", argv, i, rule, c.at)
		}
		if rule != "" && len(argv[i]) > 3 && strings.Contains(rule, argv[i]) {
			t.Errorf("the rule %q repeats the argument", rule)
		}
	}
	for _, text := range harmlessTexts() {
		if rule := d.Text(text); rule != "" {
			t.Errorf("%q is taken for a secret by %s", text, rule)
		}
	}
	for _, c := range []struct {
		name, value string
		bad         bool
	}{
		{"DB_PASSWORD", "correcthorse", true}, {"GITHUB_TOKEN", "a1b2c3d4e5f6g7h8", true}, {"X", fake("ghp_", 36), true},
		{"DB_PASSWORD", "secret:DB", false}, {"TOKEN_FILE", "/run/a1b2c3d4", false}, {"PWD", "/home/a1b2c3d4e5f6", false}, {"COMMIT", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", false},
	} {
		if rule := d.Pair(c.name, c.value); (rule != "") != c.bad {
			t.Errorf("%s=%s: rule %q", c.name, c.value, rule)
		}
	}
	if _, err := NewDetector("("); err == nil {
		t.Error("a broken pattern was taken")
	}
}

func FuzzDetector(f *testing.F) {
	d, err := NewDetector()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("tool", "--token", "a1b2c3d4e5f6g7h8")
	f.Add("mysql", "-p", "")
	f.Add("openssl", "pass:", "\xff")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		i, rule := d.Argv([]string{a, b, c})
		if i < 0 || i > 2 || rule == "" && i != 0 {
			t.Fatalf("argument %d, rule %q", i, rule)
		}
		d.Pair(a, b)
	})
}
