package front_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/site"
)

// keptTexts is what text ls --json prints.
type keptTexts struct {
	Texts []struct {
		Digest string `json:"digest"`
		Kind   string `json:"kind"`
		Text   string `json:"text"`
	} `json:"texts"`
}

// asBus is a connection with the bus's own rights, which nobody else has.
func asBus(t *testing.T, s *lab.Site) *bus.Conn {
	t.Helper()
	layout := site.Layout{Dir: s.Dir}
	cfg, err := host.LoadSite(layout)
	if err != nil {
		t.Fatal(err)
	}
	c, err := host.Connection{Layout: layout, Site: cfg, Actor: "bus", Power: events.RoleBus}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestErasedWordsAreGone: what an admin orders to be erased is in no file of the site
// any more, while every proof and every head of before still verifies.
func TestErasedWordsAreGone(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	secrets := []string{"wegen-Frau-Mustermann-4711", "Herr-Beispiel-wohnt-dort", "gehoert-Frau-Mustermann"}
	texts := func(job string) (list keptTexts) {
		s.Must(0, "text", "ls", "--json", job).JSON(t, &list)
		return list
	}
	job := settled(t, s, s.Must(0, "propose", "--reason", secrets[0], "--", "touch", "x"))
	s.Must(0, "comment", job, secrets[1])
	r := s.Must(0, "deny", job, "--reason", secrets[2])
	again := strings.TrimSpace(s.Must(77, "propose", "--reason", secrets[0], "--", "touch", "x").Stdout)
	for _, secret := range secrets {
		if out := s.Must(0, "show", job).Stdout; !strings.Contains(out, secret) {
			t.Errorf("show does not say %q: %s", secret, out)
		}
		for _, path := range filesWith(t, s.Dir, secret) {
			if !strings.Contains(path, "BANKSMAN_BLOBS") {
				t.Errorf("%q is kept in %s", secret, path)
			}
		}
		if len(filesWith(t, s.Dir, secret)) == 0 {
			t.Errorf("%q is kept nowhere", secret)
		}
	}
	if out := s.Must(0, "show", again).Stdout; !strings.Contains(out, secrets[2]) || !strings.Contains(r.Stdout, "denied") {
		t.Errorf("the denial that sticks does not quote the first one: %s", out)
	}
	out := t.TempDir()
	anchor := filepath.Join(out, "anchor")
	s.Must(0, "audit", "verify")
	s.Must(0, "audit", "anchor", "--file", anchor)

	list := texts(job)
	if len(list.Texts) != 3 {
		t.Fatalf("want three texts: %+v", list)
	}
	s.Must(1, "text", "erase", strings.Repeat("0", 64), "--reason", "there is no such text")
	var digests []string
	for _, x := range append(list.Texts, texts(again).Texts...) {
		digests = append(digests, x.Digest)
	}
	s.Must(2, append([]string{"text", "erase"}, digests...)...)
	s.Must(0, append([]string{"text", "erase", "--reason", "the person asked for it", "--basis", "GDPR Art. 17(1)(a)"}, digests...)...)
	s.Must(0, "text", "erase", "--reason", "once more", digests[0])
	for _, x := range texts(job).Texts {
		if x.Text != "(erased)" {
			t.Errorf("%+v", x)
		}
	}
	if text := s.Must(0, "show", job).Stdout; strings.Count(text, "(erased)") < 3 {
		t.Errorf("show does not say what is erased: %s", text)
	}
	gone := func() {
		t.Helper()
		for _, secret := range secrets {
			if found := filesWith(t, s.Dir, secret); len(found) > 0 {
				t.Errorf("%q is still in %q", secret, found)
			}
		}
	}
	gone()
	var v struct {
		verdicts
		Texts  int `json:"texts"`
		Erased int `json:"erased"`
	}
	s.Must(0, "audit", "verify", "--json", "--checkpoint", anchor).JSON(t, &v)
	if v.Erased != 4 || v.Texts != 0 {
		t.Errorf("%+v", v)
	}
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	gone()
	s.Must(0, "audit", "verify", "--checkpoint", anchor)
	s.Up()
	s.Must(0, "audit", "verify")
	gone()
}

// TestMissingWordsAreToldApart: words that are gone without an order are withheld, and
// other words in their place are no words of the author.
func TestMissingWordsAreToldApart(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	job := settled(t, s, s.Must(0, "propose", "--reason", "to see what is there", "--", "touch", "x"))
	var list keptTexts
	s.Must(0, "text", "ls", "--json", job).JSON(t, &list)
	digest := list.Texts[0].Digest
	s.Must(0, "audit", "verify")
	c, ctx := asBus(t, s), context.Background()
	if n, err := c.EraseText(ctx, digest); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	check := func(shown string, integrity, completeness bool) {
		t.Helper()
		var v verdicts
		s.Must(1, "audit", "verify", "--json").JSON(t, &v)
		if v.Integrity.OK != integrity || !v.Authenticity.OK || v.Completeness.OK != completeness {
			t.Errorf("%s: %+v", shown, v)
		}
		if out := s.Must(0, "show", job).Stdout; !strings.Contains(out, shown) {
			t.Errorf("want %s: %s", shown, out)
		}
	}
	check("(withheld)", true, false)
	if err := c.PutText(ctx, digest, []byte("0123456789abcdefto see nothing at all")); err != nil {
		t.Fatal(err)
	}
	check("(altered)", false, true)
}

// alone runs the shell verifier on a bundle where no network is, with the tools of the
// system and no Go.
func alone(t *testing.T, s *lab.Site, bundle string) (ok bool, said string) {
	t.Helper()
	origin, root := strings.Trim(s.Setting("site", "origin"), `"`), strings.Trim(s.Setting("site", "root_key"), `"`)
	script, err := filepath.Abs("../../scripts/verify.sh")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{script, bundle, origin, root}
	if exec.Command("unshare", "-rn", "true").Run() == nil {
		args = append([]string{"unshare", "-rn"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return err == nil, string(out)
}

// TestBundlesTellWhatIsMissing: a bundle that leaves the site tells complete, incomplete,
// erased and withheld apart, to banksman and to a shell without network.
func TestBundlesTellWhatIsMissing(t *testing.T) {
	t.Parallel()
	need.Program(t, "xxd")
	s := lab.NewSite(t, binary)
	s.Up()
	out := t.TempDir()
	job := settled(t, s, s.Must(0, "propose", "--reason", "the words of the proposal", "--", "touch", "x"))
	s.Must(0, "deny", job, "--reason", "the words of the denial")
	s.Must(0, "audit", "verify")
	export := func(name string) string {
		dir := filepath.Join(out, name)
		s.Must(0, "audit", "export", job, "--to", dir)
		return dir
	}
	remove := func(pattern string) {
		t.Helper()
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete, incomplete, withheld := export("complete"), export("incomplete"), export("withheld")
	remove(filepath.Join(withheld, "*.text"))
	leaves, err := filepath.Glob(filepath.Join(incomplete, "*.payload"))
	if err != nil || len(leaves) < 3 {
		t.Fatalf("%q, %v", leaves, err)
	}
	slices.SortFunc(leaves, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	last := strings.TrimSuffix(leaves[len(leaves)-1], "payload")
	remove(last + "*") // the denial
	var list keptTexts
	s.Must(0, "text", "ls", "--json", job).JSON(t, &list)
	for _, x := range list.Texts {
		s.Must(0, "text", "erase", x.Digest, "--reason", "the person asked for it")
	}
	erased := export("erased")
	for _, c := range []struct {
		bundle string
		good   bool
		shell  string
		erased int
		texts  int
	}{
		{complete, true, "ok: job", 0, 2},
		{incomplete, false, "FAILED", 0, 0},
		{withheld, false, "withheld", 0, 0},
		{erased, true, "erased by order", 2, 0},
	} {
		var v struct {
			verdicts
			Texts    int     `json:"texts"`
			Erased   []int64 `json:"erased"`
			Withheld []int64 `json:"withheld_texts"`
		}
		r := s.Run("audit", "verify", "--json", "--bundle", c.bundle)
		r.JSON(t, &v)
		if (r.Code == 0) != c.good || v.Completeness.OK != c.good || !v.Authenticity.OK || len(v.Erased) != c.erased || c.good && v.Texts != c.texts || (len(v.Withheld) > 0) != (c.bundle == withheld) {
			t.Errorf("%s: %s", filepath.Base(c.bundle), r)
		}
		if ok, said := alone(t, s, c.bundle); ok != c.good || !strings.Contains(said, c.shell) {
			t.Errorf("%s: the shell says %s", filepath.Base(c.bundle), said)
		}
	}
}
