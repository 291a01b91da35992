package redact

import "strings"

// shape is a token that says by its beginning what it is.
type shape struct {
	name    string
	anchor  string
	in      func(byte) bool
	least   int  // bytes behind the anchor
	exactly bool // and no more of them
	test    func(run string) bool
}

func (s *shape) look(w window) found {
	end := w.at + len(s.anchor)
	if len(w.text) < end {
		if w.eof || string(w.text[w.at:]) != s.anchor[:len(w.text)-w.at] {
			return found{}
		}
		return found{verdict: more, from: len(w.text), need: end}
	}
	if string(w.text[w.at:end]) != s.anchor || wordlike(w.before()) && wordlike(s.anchor[0]) {
		return found{looked: len(s.anchor)}
	}
	c := &cursor{window: w, i: end}
	run := string(c.while(s.in, reach))
	if len(run) < s.least || s.exactly && len(run) > s.least || s.test != nil && !s.test(run) {
		return c.answer(found{}, end)
	}
	f := found{verdict: yes, name: s.name, from: w.at, to: c.i}
	if len(run) == reach {
		f.rest = charTail(s.in)
	}
	return c.answer(f, end)
}

func alnum(b byte) bool   { return alpha(b) || digit(b) }
func big(b byte) bool     { return upper(b) || digit(b) }
func hex(b byte) bool     { return digit(b) || b >= 'a' && b <= 'f' }
func slug(b byte) bool    { return wordlike(b) || b == '-' }
func dotted(b byte) bool  { return slug(b) || b == '.' }
func slashed(b byte) bool { return alnum(b) || b == '/' }

// random says that one part between hyphens looks random: words in a path do
// not.
func random(run string) bool {
	for part := range strings.SplitSeq(run, "-") {
		if len(part) >= 16 && dense(part) {
			return true
		}
	}
	return false
}

func twoParts(run string) bool { return strings.Count(run, ".") == 1 && strings.Index(run, ".") >= 16 }
func signed(run string) bool   { return strings.Contains(run, ".eyJ") || strings.Count(run, ".") == 4 }

// shapes are the tokens of providers, and of banksman.
var shapes = [...]shape{
	{"aws-access-key", "AKIA", big, 16, true, nil},
	{"aws-access-key", "ASIA", big, 16, true, nil},
	{"aws-access-key", "ABIA", big, 16, true, nil},
	{"github-token", "ghp_", wordlike, 36, false, nil},
	{"github-token", "gho_", wordlike, 36, false, nil},
	{"github-token", "ghu_", wordlike, 36, false, nil},
	{"github-token", "ghs_", dotted, 36, false, nil},
	{"github-token", "ghr_", wordlike, 36, false, nil},
	{"github-token", "github_pat_", wordlike, 40, false, nil},
	{"gitlab-token", "glpat-", dotted, 20, false, nil},
	{"gitlab-token", "gldt-", dotted, 20, false, nil},
	{"gitlab-token", "glrt-", dotted, 20, false, nil},
	{"gitlab-token", "glptt-", dotted, 20, false, nil},
	{"gitlab-token", "glcbt-", dotted, 20, false, nil},
	{"gitlab-token", "glsoat-", dotted, 20, false, nil},
	{"gitlab-token", "glagent-", dotted, 20, false, nil},
	{"slack-token", "xoxb-", slug, 10, false, nil},
	{"slack-token", "xoxa-", slug, 10, false, nil},
	{"slack-token", "xoxp-", slug, 10, false, nil},
	{"slack-token", "xoxr-", slug, 10, false, nil},
	{"slack-token", "xoxs-", slug, 10, false, nil},
	{"slack-token", "xoxe-", slug, 10, false, nil},
	{"slack-token", "xoxe.", dotted, 10, false, nil},
	{"slack-token", "xoxc-", slug, 10, false, nil},
	{"slack-token", "xapp-", slug, 10, false, nil},
	{"slack-webhook", "hooks.slack.com/services/", slashed, 20, false, nil},
	{"anthropic-key", "sk-ant-", slug, 20, false, nil},
	{"openai-key", "sk-", slug, 20, false, random},
	{"google-key", "AIza", slug, 35, false, nil},
	{"google-token", "ya29.", dotted, 20, false, nil},
	{"google-secret", "GOCSPX-", slug, 20, false, nil},
	{"npm-token", "npm_", alnum, 36, false, nil},
	{"pypi-token", "pypi-", slug, 32, false, random},
	{"stripe-key", "sk_live_", alnum, 16, false, nil},
	{"stripe-key", "sk_test_", alnum, 16, false, nil},
	{"stripe-key", "rk_live_", alnum, 16, false, nil},
	{"stripe-key", "rk_test_", alnum, 16, false, nil},
	{"webhook-secret", "whsec_", tokenish, 24, false, nil},
	{"sendgrid-key", "SG.", dotted, 50, false, twoParts},
	{"json-web-token", "eyJ", dotted, 17, false, signed},
	{"digitalocean-token", "dop_v1_", hex, 64, false, nil},
	{"huggingface-token", "hf_", alnum, 30, false, nil},
	{"docker-token", "dckr_pat_", slug, 20, false, nil},
	{"shopify-token", "shpat_", alnum, 32, false, nil},
	{"vault-token", "hvs.", slug, 24, false, nil},
	{"grafana-token", "glsa_", wordlike, 32, false, nil},
	{"atlassian-token", "ATATT3", tokenish, 40, false, nil},
	{"tailscale-key", "tskey-", slug, 20, false, nil},
	{"groq-key", "gsk_", alnum, 40, false, nil},
	{"age-key", "AGE-SECRET-KEY-1", big, 40, false, nil},
	{"banksman-token", "bmt_", slug, 40, false, nil},
	{"nats-seed", "SUA", big, 55, true, nil},
	{"nats-seed", "SAA", big, 55, true, nil},
	{"nats-seed", "SOA", big, 55, true, nil},
	{"nats-seed", "SNA", big, 55, true, nil},
	{"nats-seed", "SCA", big, 55, true, nil},
	{"nats-seed", "SXA", big, 55, true, nil},
}

// shapeTable makes the table of everything that is recognised by its form.
func shapeTable() *table {
	t := newTable(3, true, false)
	for i := range shapes {
		t.add(shapes[i].anchor, &shapes[i])
	}
	for _, h := range "0123456789abcdef" { // SK and 32 hexadecimal digits
		t.add("SK"+string(h), &shape{"twilio-key", "SK" + string(h), hex, 31, true, nil})
	}
	for _, w := range words {
		t.add(w.word, &field{w.word, w.says})
	}
	t.add("authorization", header{})
	t.add("bearer ", bearer{})
	t.add("://", userinfo{})
	t.add("-----begin ", privateKey{})
	return t
}
