package proposer

import (
	"regexp"

	"github.com/banksman/banksman/events"
)

// shapes are tokens that cannot be mistaken for anything else. A proposal is
// stored for ever and shown to people, so a secret has no place in it.
var shapes = []struct {
	what string
	re   *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----`)},
	{"an AWS access key", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"a GitHub token", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})`)},
	{"a GitLab token", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{"an Anthropic key", regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]{20,}`)},
	{"an OpenAI key", regexp.MustCompile(`\bsk-(proj-)?[A-Za-z0-9_-]{32,}`)},
	{"a Slack token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"a Google API key", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)},
	{"a banksman token", regexp.MustCompile(`\bbmt_[A-Za-z0-9_-]{40,}`)},
	{"a password in a URL", regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@$]+@`)},
	{"a bearer token", regexp.MustCompile(`(?i)\bauthorization:\s*(bearer|basic)\s+[A-Za-z0-9+/_.=-]{16,}`)},
}

// secrets refuses a proposal that shows one.
func secrets(_ *Config, p *events.JobProposed) error {
	for place, text := range places(p) {
		for _, s := range shapes {
			if s.re.MatchString(text) {
				return refuse("secret", "pass it by a file or a variable that the worker holds", "%s looks like it holds %s", place, s.what)
			}
		}
	}
	return nil
}
