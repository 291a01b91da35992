package site_test

import (
	"encoding/json/v2"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/trust"
)

func plan(t *testing.T) *site.Plan {
	t.Helper()
	p, err := site.NewPlan("Ada Lovelace")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func contents() site.Contents {
	return site.Contents{Config: []byte("[site]\n"), Policy: []byte("# rules\n"), BusURL: "tls://127.0.0.1:4222", BusHosts: []string{"bus.example"}, Now: time.Unix(1_700_000_000, 0)}
}

// folder is a path for a site, below a fresh parent that is private.
func folder(t *testing.T) site.Layout {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	return site.Layout{Dir: filepath.Join(parent, "banksman")}
}

// listing is everything below a folder, with modes.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		out = append(out, info.Mode().String()+" "+strings.TrimPrefix(path, dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCreateMakesAWholeSite(t *testing.T) {
	l, p := folder(t), plan(t)
	if site.Exists(l) {
		t.Fatal("it exists before it was made")
	}
	if err := p.Create(l, contents()); err != nil {
		t.Fatal(err)
	}
	if !site.Exists(l) {
		t.Error("it does not exist after it was made")
	}
	public := []string{l.CA(), l.BusCert()}
	for _, line := range listing(t, l.Dir) {
		mode, path, _ := strings.Cut(line, " ")
		want := "-rw-------"
		if mode[0] == 'd' {
			want = "drwx------"
		} else if slices.Contains(public, l.Dir+path) {
			want = "-rw-r--r--"
		}
		if mode != want {
			t.Errorf("%s, want mode %s", line, want)
		}
	}
	for _, path := range []string{
		l.Config(), l.Policy(), l.CheckpointKey(), l.CA(), l.CAKey(), l.BusCert(), l.BusKey(), l.Token("agent", "local"), l.Genesis(),
		l.SignKey("root"), l.SignKey(p.Person), l.LoginKey(p.Person), l.SignKey("gate"), l.LoginKey("reader"), l.LoginKey("bus"),
	} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if left := listing(t, filepath.Dir(l.Dir)); slices.ContainsFunc(left, func(s string) bool { return strings.Contains(s, "banksman-init") }) {
		t.Error("the draft is still there")
	}
}

func TestGenesisIsBelievedByTheRootKey(t *testing.T) {
	l, p, c := folder(t), plan(t), contents()
	c.Policy = []byte(strings.Repeat("# a long policy\n", 20_000))
	if err := p.Create(l, c); err != nil {
		t.Fatal(err)
	}
	first, err := site.ReadGenesis(l)
	if err != nil || len(first) != 2 {
		t.Fatalf("%d events, %v", len(first), err)
	}
	book := trust.New(p.Origin, p.RootKey())
	for i, m := range first {
		e, err := book.Open(events.Stored{Seq: uint64(i + 1), Subject: m.Subject.String(), Header: m.Header, Data: m.Data})
		if err != nil {
			t.Fatal(err)
		}
		if !e.Claimed.Equal(c.Now) || e.Expect != 0 {
			t.Errorf("event %d: claimed %v, expects %d", i, e.Claimed, e.Expect)
		}
		if rules, ok := e.Payload.(*events.PolicyPublished); ok && (rules.Text != string(c.Policy) || rules.Digest != events.Digest(c.Policy) || e.Subject.Actor != p.Person) {
			t.Errorf("policy: digest %s by %s", rules.Digest, e.Subject.Actor)
		}
	}
	file := book.Current()
	if file.Version != 1 || len(file.CheckpointKeys) != 1 {
		t.Errorf("%+v", file)
	}
	for _, a := range file.Actors {
		login, err := keys.LoadLogin(l.LoginKey(a.Actor))
		if err != nil || login.Public() != a.Login {
			t.Errorf("log-in key of %s: %v", a.Actor, err)
		}
		sign, err := keys.LoadSigner(l.SignKey(a.Actor), nil)
		if a.Sign == "" {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s signs nothing but has a key: %v", a.Actor, err)
			}
		} else if err != nil || string(sign.Public()) != a.Sign {
			t.Errorf("signing key of %s: %v", a.Actor, err)
		}
	}
	if me, ok := file.Find(p.Person); !ok || me.Name != "Ada Lovelace" || !me.Has(events.RolePerson) || !me.Has(events.RoleAdmin) {
		t.Errorf("%+v", me)
	}
	root, err := keys.LoadSigner(l.SignKey("root"), nil)
	if err != nil || root.Public() != p.RootKey() {
		t.Errorf("root key: %v", err)
	}
}

func TestSpoiledGenesisIsRefused(t *testing.T) {
	l, p := folder(t), plan(t)
	if _, err := site.ReadGenesis(l); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := p.Create(l, contents()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", `[{"subject":"bm.x"}]`, "[1]"} {
		if err := os.WriteFile(l.Genesis(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := site.ReadGenesis(l); err == nil || !strings.Contains(err.Error(), l.Genesis()) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPassphraseGuardsRootAndPersonAlone(t *testing.T) {
	l, p, c := folder(t), plan(t), contents()
	c.Passphrase, c.Options = []byte("correct horse"), []keys.SealOption{keys.WorkFactor(10)}
	if err := p.Create(l, c); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"root", p.Person} {
		if _, err := keys.LoadSigner(l.SignKey(a), nil); !errors.Is(err, keys.ErrNeedsPassphrase) {
			t.Errorf("%s: %v", a, err)
		}
		if _, err := keys.LoadSigner(l.SignKey(a), func(string) ([]byte, error) { return []byte("correct horse"), nil }); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	if _, err := keys.LoadSigner(l.SignKey("gate"), nil); err != nil {
		t.Error(err)
	}
}

func TestContexts(t *testing.T) {
	l, p := folder(t), plan(t)
	if err := p.Create(l, contents()); err != nil {
		t.Fatal(err)
	}
	for _, actor := range []string{"reader", p.Person} {
		text, err := os.ReadFile(filepath.Join(l.NATS(), "nats", "context", actor+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got["url"] != "tls://127.0.0.1:4222" || got["nkey"] != l.LoginKey(actor) || got["ca"] != l.CA() || got["tls_first"] != true {
			t.Errorf("%s", text)
		}
		for _, key := range []string{"nkey", "ca"} { // they name the final place, not the draft
			if _, err := os.Stat(got[key].(string)); err != nil {
				t.Error(err)
			}
		}
	}
}

// Whatever stops it, a folder is left as it was found.
func TestCreateIsAllOrNothing(t *testing.T) {
	for what, c := range map[string]struct {
		prepare func(t *testing.T, l site.Layout)
		spoil   func(*site.Contents)
		exists  bool
	}{
		"a folder with something in it": {prepare: func(t *testing.T, l site.Layout) { mkdir(t, l.Dir); write(t, filepath.Join(l.Dir, "x")) }, exists: true},
		"a file":                        {prepare: func(t *testing.T, l site.Layout) { write(t, l.Dir) }, exists: true},
		"a link to an empty folder":     {prepare: func(t *testing.T, l site.Layout) { link(t, t.TempDir(), l.Dir) }, exists: true},
		"a link to nothing":             {prepare: func(t *testing.T, l site.Layout) { link(t, "nowhere", l.Dir) }, exists: true},
		"a parent that is a file":       {prepare: func(t *testing.T, l site.Layout) { remove(t, filepath.Dir(l.Dir)); write(t, filepath.Dir(l.Dir)) }},
		"a parent that others may write": {prepare: func(t *testing.T, l site.Layout) {
			if err := os.Chmod(filepath.Dir(l.Dir), 0o777); err != nil {
				t.Fatal(err)
			}
		}},
		"an empty passphrase":      {spoil: func(c *site.Contents) { c.Passphrase = []byte{} }},
		"a policy no event fits":   {spoil: func(c *site.Contents) { c.Policy = make([]byte, 600<<10) }},
		"a policy that is no text": {spoil: func(c *site.Contents) { c.Policy = []byte("\xff") }},
	} {
		t.Run(what, func(t *testing.T) {
			l, content := folder(t), contents()
			if c.prepare != nil {
				c.prepare(t, l)
			}
			if c.spoil != nil {
				c.spoil(&content)
			}
			before := listing(t, filepath.Dir(l.Dir))
			err := plan(t).Create(l, content)
			if err == nil || errors.Is(err, site.ErrExists) != c.exists {
				t.Errorf("%v", err)
			}
			if err != nil && !strings.Contains(err.Error(), l.Dir) {
				t.Errorf("%v does not name the folder", err)
			}
			if after := listing(t, filepath.Dir(l.Dir)); !slices.Equal(before, after) {
				t.Errorf("it left %q, there was %q", after, before)
			}
		})
	}
}

// A second init beside the first overwrites nothing.
func TestCreateTwice(t *testing.T) {
	l := folder(t)
	first := plan(t)
	if err := first.Create(l, contents()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(l.SignKey("root"))
	if err != nil {
		t.Fatal(err)
	}
	if err := plan(t).Create(l, contents()); !errors.Is(err, site.ErrExists) {
		t.Error(err)
	}
	if after, _ := os.ReadFile(l.SignKey("root")); string(after) != string(before) {
		t.Error("the root key was replaced")
	}
}

// Two at the same moment: one makes the site, the other changes nothing.
func TestCreateAtTheSameMoment(t *testing.T) {
	l := folder(t)
	plans := []*site.Plan{plan(t), plan(t)}
	results := make(chan error)
	for _, p := range plans {
		go func() { results <- p.Create(l, contents()) }()
	}
	a, b := <-results, <-results
	if (a == nil) == (b == nil) {
		t.Fatalf("%v, %v", a, b)
	}
	first, err := site.ReadGenesis(l)
	if err != nil {
		t.Fatal(err)
	}
	winner := slices.IndexFunc(plans, func(p *site.Plan) bool {
		return strings.Contains(first[0].Header[events.HeaderSource][0], p.Origin)
	})
	root, err := keys.LoadSigner(l.SignKey("root"), nil)
	if err != nil || root.Public() != plans[winner].RootKey() {
		t.Errorf("genesis and root key are of two sites: %v", err)
	}
}

func TestAnEmptyFolderIsTaken(t *testing.T) {
	l := folder(t)
	mkdir(t, l.Dir)
	if err := plan(t).Create(l, contents()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(l.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestPlansDiffer(t *testing.T) {
	a, b := plan(t), plan(t)
	if a.Origin == b.Origin || a.RootKey() == b.RootKey() || events.CheckName("origin", a.Origin) != nil || events.CheckName("actor", a.Person) != nil {
		t.Errorf("%s %s", a.Origin, b.Origin)
	}
	if strings.Contains(strings.ToLower(a.Origin+a.Person), "ada") {
		t.Error("the person's name shows in tokens")
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
