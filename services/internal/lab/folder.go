package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/banksman/banksman/services/internal/site"
)

// layout is the site's folder.
func (s *Site) layout() site.Layout { return site.Layout{Dir: s.Dir} }

// setting finds a key of a table in the site's configuration.
func (s *Site) setting(text, table, key string) (from, to int) {
	s.t.Helper()
	at := regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(table) + `\]$`).FindStringIndex(text)
	if at == nil {
		s.t.Fatalf("the configuration has no table %s", table)
	}
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + ` = (.*)$`).FindStringSubmatchIndex(text[at[1]:])
	if line == nil {
		s.t.Fatalf("the configuration has no key %s.%s", table, key)
	}
	return at[1] + line[2], at[1] + line[3]
}

func (s *Site) config() string {
	s.t.Helper()
	text, err := os.ReadFile(s.layout().Config())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// Setting returns a text of the site's configuration.
func (s *Site) Setting(table, key string) string {
	s.t.Helper()
	text := s.config()
	from, to := s.setting(text, table, key)
	return strings.Trim(text[from:to], `"`)
}

// Set changes the site's configuration; value is written as TOML has it. Roles
// read it when they start.
func (s *Site) Set(table, key, value string) {
	s.t.Helper()
	text := s.config()
	from, to := s.setting(text, table, key)
	if err := os.WriteFile(s.layout().Config(), []byte(text[:from]+value+text[to:]), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Outpost makes a folder for another host of the same site: the configuration,
// the certificate of the CA and the keys of one actor.
func (s *Site) Outpost(actor string) *Site {
	s.t.Helper()
	o := &Site{t: s.t, Bin: s.Bin, Dir: filepath.Join(s.t.TempDir(), "outpost"), Env: s.Env}
	from, to := s.layout(), o.layout()
	for _, path := range []struct{ from, to string }{
		{from.Config(), to.Config()}, {from.CA(), to.CA()},
		{from.LoginKey(actor), to.LoginKey(actor)}, {from.SignKey(actor), to.SignKey(actor)},
	} {
		text, err := os.ReadFile(path.from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path.to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path.to, text, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return o
}

// Elsewhere is the folder of a site at another place, which somebody else makes.
func (s *Site) Elsewhere(dir string) *Site { return &Site{t: s.t, Bin: s.Bin, Dir: dir, Env: s.Env} }
