package repocheck

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// rule is one thing that holds everywhere in the project.
type rule struct {
	name string
	why  string
	find func(*tree) []fault
	// except maps a place, or the beginning of one, to the reason why the rule
	// does not bind there.
	except map[string]string
	// planted are files that break the rule, each in one place.
	planted map[string]string
}

// rules are all of them; each file of this package adds its own.
func rules() []rule {
	return slices.Concat(arrowRules(), pureRules(), sourceRules(), docRules(), textRules())
}

func TestRules(t *testing.T) {
	project, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			used := map[string]bool{}
			for _, f := range r.find(project) {
				if key, ok := r.excused(f); ok {
					used[key] = true
				} else {
					t.Errorf("%s: %s", f.where, f.what)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(r.except)) {
				if !used[key] {
					t.Errorf("the exception %q excuses nothing; take it away", key)
				}
			}
			if t.Failed() {
				t.Logf("the rule: %s", r.why)
			}
		})
	}
}

func (r rule) excused(f fault) (string, bool) {
	for key := range r.except {
		if strings.HasPrefix(f.where, key) {
			return key, true
		}
	}
	return "", false
}

// Every rule finds what was planted for it, once in each file, and says where.
func TestRulesNoticeWhatTheyForbid(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			if r.why == "" || len(r.planted) == 0 {
				t.Fatal("a rule needs a reason and a planted example")
			}
			for name, content := range r.planted {
				bad := fstest.MapFS{name: {Data: []byte(content)}}
				project, err := readTree(bad)
				if err != nil {
					t.Fatal(err)
				}
				found := r.find(project)
				if len(found) != 1 || !strings.HasPrefix(found[0].where, strings.TrimSuffix(name, "/x.go")) {
					t.Errorf("%s: found %v, want one fault there\n%s", name, found, content)
				}
			}
		})
	}
}
