package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// fake builds a token of a provider from parts, so that no scanner takes this
// file for a leak.
func fake(prefix string, n int) string {
	const letters = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
	return prefix + strings.Repeat(letters, n/len(letters)+1)[:n]
}

func pem(sep string) string {
	lines := []string{"-----BEGIN RSA " + "PRIVATE KEY-----"}
	for i := range 6 {
		lines = append(lines, fmt.Sprintf("MIIFake%s%02d", strings.Repeat("FakeFake", 6), i))
	}
	return strings.Join(append(lines, "-----END RSA "+"PRIVATE KEY-----", ""), sep)
}

// Everything that says by its form that it is a secret goes, what stands around
// it stays.
func TestShapes(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
	for _, c := range []struct{ in, secret, rule string }{
		{"key %s ok", "AKIA" + "ABCDEFGH12345678", "aws-access-key"},
		{"aws_secret_access_key = %s", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "secret"},
		{"AWS_SECRET_ACCESS_KEY=%s", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "secret"},
		{"export GITHUB_TOKEN=%s\n", fake("ghp_", 36), "token"},
		{"remote: %s", fake("ghs_", 36), "github-token"},
		{"<%s>", fake("github_pat_", 60), "github-token"},
		{"%s", fake("glpat-", 20), "gitlab-token"},
		{"slack %s", "xoxb-" + "123456789012-abcdefABCDEF", "slack-token"},
		{"%s,", fake("sk-ant-api03-", 80), "anthropic-key"},
		{"%s,", fake("sk-", 48), "openai-key"},
		{"%s,", fake("sk-proj-", 48), "openai-key"},
		{"%s", fake("AIza", 35), "google-key"},
		{"%s", fake("npm_", 36), "npm-token"},
		{"%s", fake("pypi-AgEIcHlwaS5vcmcC", 40), "pypi-token"},
		{"%s", fake("sk_live_", 24), "stripe-key"},
		{"%s", fake("SG.", 22) + "." + fake("", 43), "sendgrid-key"},
		{"%s", "SK" + strings.Repeat("0123456789abcdef", 2), "twilio-key"},
		{"auth %s end", jwt, "json-web-token"},
		{"%s", fake("bmt_", 43), "banksman-token"},
		{"Authorization: Bearer %s", "pat-FAKE-0123456789", "authorization"},
		{`"authorization": "Basic %s"`, "eC1hY2Nlc3MtdG9rZW46cGF0LUZBS0U=", "authorization"},
		{"curl with bearer %s", fake("", 24), "bearer-token"},
		{"PRIVATE-TOKEN: %s", "pat-FAKE-0123456789", "token"},
		{"DB_PWD=%s", "correcthorse", "pwd"},
		{"passwd=%s;", "correcthorse", "passwd"},
		{`{"password": "%s"}`, "correct horse battery", "password"},
		{`{\"password\": \"%s\"}`, "correct horse battery", "password"},
		{"password: %s", "hunter2", "password"},
		{"https://alice:%s@internal.invalid/r.git", "hunter2longer", "url-password"},
		{"postgres://app:%s@db.invalid:5432/x", "s3cretP@ss", "url-password"},
		{"redis://:%s@cache.invalid/0", "onlypass99", "url-password"},
		{"https://%s@git.invalid/o/r", fake("", 40), "url-token"},
		{"a\n%s", pem("\n"), "private-key"},
		{"%s", pem(" "), "private-key"},
		{"%s", pem(""), "private-key"},
		{`{"private_key":"%s"}`, pem(`\n`), "private-key"},
		{"%s", pem("\nstdout | "), "private-key"},
	} {
		text := fmt.Sprintf(c.in, c.secret)
		out := string(New().Bytes([]byte(text)))
		if strings.Contains(out, c.secret) || !strings.Contains(out, "[redacted: "+c.rule+"]") {
			t.Errorf("%q became %q, want %s", text, out, c.rule)
		}
		before, _, _ := strings.Cut(c.in, "%s")
		if !strings.HasPrefix(out, before) {
			t.Errorf("%q became %q", text, out)
		}
		if len(c.secret) > 200 && strings.Contains(out, "MIIFake") {
			t.Errorf("part of the key is left: %q", out)
		}
	}
}

// harmlessTexts look a little like secrets and are none.
func harmlessTexts() []string {
	return []string{
		"commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904", "id 018f3a2e-7b1c-7def-8123-456789abcdef",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		base64.StdEncoding.EncodeToString([]byte("some test data, quite harmless, with digits 0123456789")),
		"session: expired", "fix: token: format was wrong", "session=2", "cookie: chocolate", "the token: it expired",
		"/usr/lib/python3/dist-packages/sk-learn-contrib-extra-1.2/x", "sk-learn-0.24.1-documentation-index", "PWD=/home/user/a1b2c3d4e5f6a7b8c9d0e1f2", "OLDPWD=/tmp/x1234567",
		"ssh://git@host.invalid/r.git", "git@host.invalid:o/r.git", "mail bob@example.invalid", "https://host.invalid/a:b@c",
		"max_tokens: 4096", `"input_tokens": 1234567890`, "const maxTokens = 100000", "tokens := strings.Fields(text)", "token = newTokenFromContext2(ctx)",
		"password: incorrect", "Password: ", "secret_name=my-app-2024-prod", "TOKEN_FILE=/run/secrets/t0k3n", "--token $TOKEN", "password=${DB_PASSWORD}",
		"DB=secret:PROD_DB_2024", "Authorization: Bearer $TOKEN", "-H 'Authorization: Bearer <token>'", "https://user:$PASS@host/", "token_expires: 2026-11-29T20:11:44Z",
		"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUFakeFakeFakeFake", "grep -r '-----BEGIN RSA PRIVATE KEY-----' .", "monkey=banana", "keyboard: qwerty12345",
		"{ hello } [ world ]", "=== RUN TestLatest\n--- PASS: TestLatest (0.123s)", "a\x00b\xfe\xff\xc3\x28\x1b[31mred", "author: alice1234567", "pwd", "secret", "eyJ", "AKIA is a prefix", "://", "ghp_short",
	}
}

func TestHarmlessTextsStay(t *testing.T) {
	for _, text := range harmlessTexts() {
		if out := New().Bytes([]byte(text)); string(out) != text {
			t.Errorf("%q became %q", text, out)
		}
	}
}

// A known value is found in every form in which programs commonly print it.
func TestKnownValues(t *testing.T) {
	const secret = `pä"ss/w&rd<0123>+ x`
	r := New(Value{Name: "DB", Text: secret})
	quotedText, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(quotedText))
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"plain": secret, "json": string(quotedText), "json twice": string(twice), "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
		"query, small": lowerEscapes(url.QueryEscape(secret)),
	}
	for i := range 4 {
		text := strings.Repeat("x", i) + ":" + secret + strings.Repeat("y", i)
		forms[fmt.Sprint("base64 ", i)] = base64.StdEncoding.EncodeToString([]byte(text))
		forms[fmt.Sprint("base64url ", i)] = base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	for name, form := range forms {
		for _, wrap := range []int{0, 5, 7, 76} {
			text := "begin " + wrapped(form, wrap) + " end"
			out := string(r.Bytes([]byte(text)))
			if !strings.Contains(out, "[redacted: DB]") || strings.Contains(out, form) || !strings.HasPrefix(out, "begin ") || !strings.HasSuffix(out, " end") {
				t.Errorf("%s wrapped at %d: %q became %q", name, wrap, text, out)
			}
		}
	}
}

func wrapped(text string, at int) string {
	if at == 0 {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if i > 0 && i%at == 0 {
			b.WriteString("\n")
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func TestValueOfLinesAndDocuments(t *testing.T) {
	lines := []string{"line-one-AAAABBBBCCCC1111", "line-two-DDDDEEEEFFFF2222", "line-three-GGGGHHHHIIII3333"}
	document := map[string]any{"type": "service_account", "private_key_id": "f871b60d0617be1900000000000000000fake00", "password": "foobar-Long-Secret-1"}
	pretty, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	r := New(Value{"DEPLOY_KEY", strings.Join(lines, "\n")}, Value{"SA_JSON", string(pretty)})
	for _, sep := range []string{"\n", "\r\n", "\n    ", "\nstdout | ", `\n`} {
		out := string(r.Bytes([]byte(strings.Join(lines, sep) + "\ntail ok")))
		for _, l := range lines {
			if strings.Contains(out, l) {
				t.Errorf("%q is left in %q", l, out)
			}
		}
		if !strings.HasSuffix(out, "\ntail ok") {
			t.Errorf("the end is lost: %q", out)
		}
	}
	text := "id f871b60d0617be1900000000000000000fake00, foobar-Long-Secret-1 { hello } [ world ]"
	if out := string(r.Bytes([]byte(text))); out != "id [redacted: SA_JSON], [redacted: SA_JSON] { hello } [ world ]" {
		t.Errorf("%q", out)
	}
}

func TestWeakValuesAreNamedAndNotUsed(t *testing.T) {
	r := New(Value{"EMPTY", ""}, Value{"SPACE", " "}, Value{"ONE", "1"}, Value{"WORD", "test"}, Value{"PLAIN", "0000000000"}, Value{"GOOD", "abcd-efgh-1234"})
	if got := strings.Join(r.Weak(), " "); got != "EMPTY SPACE ONE WORD PLAIN" {
		t.Errorf("weak: %s", got)
	}
	text := "foo bar 101 11 end test 0000000000"
	if out := string(r.Bytes([]byte(text))); out != text {
		t.Errorf("%q", out)
	}
	if s := fmt.Sprintf("%v %+v %#v", Value{"A", "hidden-value"}, Value{"A", "hidden-value"}, Value{"A", "hidden-value"}); strings.Contains(s, "hidden") {
		t.Errorf("a value shows itself: %s", s)
	}
}

func TestUnendingKey(t *testing.T) {
	text := "mid\n-----BEGIN " + "PRIVATE KEY-----" + strings.Repeat("A", 200_000) + "\nshort\nwhat follows it\n"
	out := string(New().Bytes([]byte(text)))
	if strings.Contains(out, "AAAA") || !strings.HasPrefix(out, "mid\n[redacted: private-key]") || !strings.HasSuffix(out, "what follows it\n") {
		t.Errorf("%q", out[:min(len(out), 200)])
	}
}

// pieces of a text that secrets are planted among, meant to mislead.
func noise(r *rand.Rand) string {
	parts := append(harmlessTexts(), "", " ", "\n", "\r\n", "\n\n\n", "=", ":", "\"", "\\", "token=", "password=", "sk-", "sk-ant-", "eyJ", "https://a:", "@", "bearer ",
		"Authorization: ", "-----BEGIN "+"PRIVATE KEY-----", "-----END", "[redacted: x]", "x", "MIIFakeFakeFakeFakeFake", "secret", "AKIA", "\x00", "\xff\xfe")
	return parts[r.IntN(len(parts))]
}

// Known values never get through, whatever surrounds them and however the text
// is split; and the split does not matter.
func FuzzRedact(f *testing.F) {
	f.Add(uint64(1), "some-secret-0123", []byte("text"))
	f.Add(uint64(2), "multi\nline-secret-value-0123\nand-another-line-4567", []byte("password="))
	f.Add(uint64(3), `{"password":"abc-def-ghi-123"}`, []byte("\n"))
	f.Add(uint64(4), "AAAAAAAABBBBCCCCDDDD", []byte("AAAAAAAA"))
	f.Add(uint64(5), "aaaa\r\nbbcd", []byte{0xff})
	f.Add(uint64(6), "token=abcdef", []byte("https://u:p@h"))
	f.Fuzz(func(t *testing.T, seed uint64, secret string, extra []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		rules := New(Value{"S", secret})
		var text []byte
		for range r.IntN(20) {
			switch r.IntN(4) {
			case 0:
				text = append(text, secret...)
			case 1:
				text = append(text, extra...)
			case 2:
				text = append(text, base64.StdEncoding.EncodeToString([]byte(noise(r)+secret+noise(r)))...)
			default:
				text = append(text, noise(r)...)
			}
		}
		whole := rules.Bytes(text)
		if trimmed := strings.Trim(secret, " \t\r\n"); !Weak(trimmed) && !strings.ContainsAny(trimmed, "\r\n") && len(trimmed) < 1024 {
			if bytes.Contains(whole, []byte(trimmed)) && !strings.Contains("[redacted: S]", trimmed) {
				t.Fatalf("%q is left in %q", trimmed, whole)
			}
		}
		if most := len(text)*8 + 200; len(whole) > most {
			t.Fatalf("%d bytes became %d", len(text), len(whole))
		}
		var split, paused []byte
		a := rules.Stream(func(p []byte) { split = append(split, p...) })
		b := rules.Stream(func(p []byte) { paused = append(paused, p...) })
		for rest := text; len(rest) > 0; {
			n := 1 + r.IntN(min(len(rest), 1<<r.IntN(12)))
			a.Write(rest[:n])
			b.Write(rest[:n])
			b.Idle()
			if b.Held() {
				t.Fatal("an idle stream holds back what it could pass on")
			}
			rest = rest[n:]
		}
		a.Close()
		b.Close()
		if !bytes.Equal(split, whole) {
			t.Fatalf("split:\n%q\nwhole:\n%q\ntext:\n%q", split, whole, text)
		}
		if trimmed := strings.Trim(secret, " \t\r\n"); !Weak(trimmed) && !strings.ContainsAny(trimmed, "\r\n") && len(trimmed) < 1024 && !strings.Contains("[redacted: S]", trimmed) && bytes.Contains(paused, []byte(trimmed)) {
			t.Fatalf("%q is left in %q after pauses", trimmed, paused)
		}
	})
}

// A prompt is seen although it begins like a secret; the secret is not.
func TestIdlePassesPromptsOn(t *testing.T) {
	var out []byte
	s := New(Value{"S", "pass-0123456789"}).Stream(func(p []byte) { out = append(out, p...) })
	for _, step := range []struct{ write, seen string }{
		{"one", "one"}, {"Password: ", "onePassword: "}, {"hunt", "onePassword: "}, {"er2", "onePassword: "}, {"\n", "onePassword: [redacted: password]\n"},
		{"pas", "onePassword: [redacted: password]\npas"}, {"s-01", "onePassword: [redacted: password]\npas"},
		{"23456789.", "onePassword: [redacted: password]\npas[redacted: S]."},
	} {
		s.Write([]byte(step.write))
		s.Idle()
		if string(out) != step.seen {
			t.Fatalf("after %q: %q, want %q", step.write, out, step.seen)
		}
	}
}

// A text that makes rules look ahead again and again ends in silence, and says
// so, instead of taking for ever.
func TestShareOfLooking(t *testing.T) {
	var out []byte
	s := New().Stream(func(p []byte) { out = append(out, p...) })
	s.stages[0].share = 1000
	text := []byte(strings.Repeat("password:"+strings.Repeat("a", 900)+" ", 2000))
	s.stages[0].paid = len(text) // nothing is earned
	s.Write(text)
	s.Close()
	if s.Withheld() == 0 || !bytes.HasSuffix(out, []byte("took too long]")) || len(out) > 4000 {
		t.Errorf("%d withheld, %q", s.Withheld(), out[max(0, len(out)-100):])
	}
}

// Rules look at each byte a few times at most, whatever the text and however
// it is split: what is counted is work, so that a slow machine counts the same.
func TestLookingIsBounded(t *testing.T) {
	const most = 32 // looks for each byte; one that repeats itself for every byte has hundreds
	rules := New(Value{"A", fake("x", 40)}, Value{"B", fake("y", 400)}, Value{"C", strings.Repeat("abcdefg\n", 8)})
	all := texts()
	all["nearly a value"] = []byte(strings.Repeat(fake("y", 399)+"!", 1<<20/400))
	all["headers"] = []byte(strings.Repeat("authorization: basic ", 1<<20/21))
	all["nested quotes"] = []byte(strings.Repeat(`"password":"a`, 1<<20/13))
	for name, text := range all {
		for _, size := range []int{32 << 10, 100, 1} {
			if size == 1 {
				text = text[:64<<10]
			}
			s := rules.Stream(func([]byte) {})
			for i := 0; i < len(text); i += size {
				s.Write(text[i:min(len(text), i+size)])
			}
			s.Close()
			looked := int64(0)
			for _, st := range s.stages {
				looked += st.looked
			}
			limit := most * int64(len(text))
			if name == "sk" { // begins a token at every third byte: its share is spent, and the rest withheld
				limit = shareBurst + shareOf*int64(len(text))
			}
			if looked > limit {
				t.Errorf("%s in writes of %d: %.1f looks for each byte", name, size, float64(looked)/float64(len(text)))
			}
			if (s.Withheld() > 0) != (name == "sk") {
				t.Errorf("%s in writes of %d: %d bytes are withheld", name, size, s.Withheld())
			}
		}
	}
}

// Memory does not grow with the stream.
func TestMemoryIsBounded(t *testing.T) {
	s := New(Value{"S", fake("", 2000)}).Stream(func([]byte) {})
	text := []byte(strings.Repeat("password:"+strings.Repeat("a", 900)+" eyJ", 100) + fake("", 1900))
	for range 100 {
		s.Write(text)
		for _, st := range s.stages {
			if cap(st.buf) > 4*stageBytes {
				t.Fatalf("%d bytes are held", cap(st.buf))
			}
		}
	}
}

// What a site calls a secret is replaced in whole lines, however they are written,
// beside known values and shapes, and however long a line is.
func TestPatternsOfTheSite(t *testing.T) {
	r, err := New(Value{Name: "DB", Text: "correct-horse-battery"}).Own(`\bcorp-[0-9]{6}\b`, `(?i)badge:\s*\S+`)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 3*lineBytes)
	for in, want := range map[string]string{
		"id corp-123456 end\n":                    "id [redacted: pattern of this site] end\n",
		"corp-123456 corp-12345 corp-654321":      "[redacted: pattern of this site] corp-12345 [redacted: pattern of this site]",
		"Badge: 77a\nnext line\n":                 "[redacted: pattern of this site]\nnext line\n",
		"corp-123\n456\n":                         "corp-123\n456\n",
		"correct-horse-battery and corp-000000\n": "[redacted: DB] and [redacted: pattern of this site]\n",
		"":                                   "",
		"\n\n":                               "\n\n",
		long + " corp-123456 " + long + "\n": long + " [redacted: pattern of this site] " + long + "\n",
	} {
		for _, size := range []int{1, 7, 4096, len(in) + 1} {
			if size == 1 && len(in) > 4096 {
				continue
			}
			var out []byte
			s := r.Stream(func(p []byte) { out = append(out, p...) })
			for i := 0; i < len(in); i += size {
				s.Write([]byte(in[i:min(i+size, len(in))]))
				if !strings.Contains(in, "horse") { // the first bytes of a known value may leave so
					s.Idle()
				}
			}
			s.Close()
			if string(out) != want {
				t.Errorf("%.60q in pieces of %d: %.120q", in, size, out)
			}
			if n := strings.Count(want, "[redacted"); s.Redacted() != n {
				t.Errorf("%.60q: %d counted, want %d", in, s.Redacted(), n)
			}
		}
	}
	again := r.With(Value{Name: "OTHER", Text: "another-value-1234"})
	if got := string(again.Bytes([]byte("corp-123456 another-value-1234"))); got != "[redacted: pattern of this site] [redacted: OTHER]" {
		t.Errorf("other values forget the patterns: %q", got)
	}
	for _, bad := range []string{"(", "x*", ""} {
		if _, err := New().Own(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
		if _, err := NewDetector(bad); err == nil {
			t.Errorf("the detector took %q", bad)
		}
	}
}
