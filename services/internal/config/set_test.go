package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/config"
)

type site struct {
	Dir   string            `toml:"dir" doc:"A folder."`
	Limit int               `toml:"limit_s" doc:"Seconds."`
	Env   map[string]string `toml:"env" doc:"Variables."`
}

func (s *site) Validate() error {
	if s.Dir == "" {
		return errors.New("dir is required")
	}
	return nil
}

type other struct {
	Dir string `toml:"dir" doc:"Another folder."`
}

func sections() (config.Section, *config.Set[site]) {
	set := &config.Set[site]{Default: func() site { return site{Limit: 7} }}
	return config.Section{Name: "supervisor", Into: &other{}, With: []config.Section{{Name: "projects", Into: set}}}, set
}

func TestSetHoldsEachTableWithItsDefaults(t *testing.T) {
	s, set := sections()
	text := "[supervisor]\ndir = \"/a\"\n[projects.one]\ndir = \"/b\"\nenv = {A = \"x\"}\n[projects.two]\ndir = \"/c\"\nlimit_s = 9\n"
	if err := config.Decode("f", []byte(text), s); err != nil {
		t.Fatal(err)
	}
	if one, two := set.Tables["one"], set.Tables["two"]; len(set.Tables) != 2 || one.Limit != 7 || one.Dir != "/b" || one.Env["A"] != "x" || two.Limit != 9 {
		t.Errorf("%+v %+v", set.Tables["one"], set.Tables["two"])
	}
}

func TestSetNamesWhatIsWrongWithATable(t *testing.T) {
	for text, want := range map[string]string{
		"[supervisor]\ndir = \"/a\"\n[projects.one]\ndir = \"/b\"\ndri = 3\n": `line 5: table [projects.one] has no key "dri"; did you mean "dir"?`,
		"[projects.one]\nlimit_s = 3\n":                                       "one: dir is required",
		"[projects]\none = 3\n":                                               "projects.one",
		"[project.one]\ndir = \"/b\"\n":                                       `did you mean "projects"?`,
		"[projects.one]\ndir = 3\n":                                           "projects.one",
	} {
		s, _ := sections()
		err := config.Decode("f", []byte(text), s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What Render writes is read back as it was; an empty set shows its manual
// and nothing that counts.
func TestSetIsRenderedAsItIsRead(t *testing.T) {
	s, set := sections()
	set.Tables = map[string]*site{"one": {Dir: "/b", Limit: 3, Env: map[string]string{"A": "x\"y", "B": ""}}}
	text := config.Render(s)
	again, got := sections()
	if err := config.Decode("f", text, again); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if fmt.Sprint(*got.Tables["one"]) != fmt.Sprint(*set.Tables["one"]) {
		t.Errorf("%+v of\n%s", got.Tables["one"], text)
	}
	empty, got := sections()
	text = config.Render(empty)
	if err := config.Decode("f", text, empty); err != nil || len(got.Tables) != 0 || !strings.Contains(string(text), "# [projects.NAME]\n# # A folder.\n# dir = ") {
		t.Errorf("%v in\n%s", err, text)
	}
}
