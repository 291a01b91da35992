package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/banksman/banksman/services/internal/config"
)

// everything is a table with every kind of value that tables have.
type everything struct {
	Text  string            `toml:"text" doc:"A text."`
	Time  int               `toml:"timeout_s" doc:"Seconds."`
	Big   int64             `toml:"max_bytes" doc:"Bytes."`
	On    bool              `toml:"on" doc:"A switch."`
	Share float64           `toml:"share" doc:"A share."`
	List  []string          `toml:"list" doc:"Texts."`
	Env   map[string]string `toml:"env" doc:"Variables."`
	_     int               // no key of the table
}

func (e *everything) Validate() error {
	if e.Time < 0 {
		return errors.New("timeout_s is negative")
	}
	return nil
}

func TestFaultsNameLineAndNearest(t *testing.T) {
	for text, want := range map[string][]string{
		"[worker]\ntimeout_s = 3\n[worker2]\n":                 {`line 3: no table [worker2]; did you mean "worker"?`},
		"\n[elsewhere.other]\nx = 1\n":                         {`line 2: no table [elsewhere]; known are site, bus`},
		"text = 1\n":                                           {`line 1: key "text" stands outside of any table`},
		"[worker]\ntimeout_s = 3\ntime_s = 4\n":                {`line 3: table [worker] has no key "time_s"`},
		"[worker]\ntimeout_s = 3\ntimeout = 4\n":               {`line 3: table [worker] has no key "timeout"; did you mean "timeout_s"?`},
		"[bus]\ntime = 3\n[worker]\n\"time\" = 4 # [bus]\n":    {`line 4: table [worker] has no key "time"`},
		"[worker]\nx = 1\n":                                    {`has no key "x"; known are text, timeout_s`},
		"[worker]\nenvy.x = \"1\"\n":                           {`line 2: table [worker.envy] has no key "x"`},
		"[worker]\ntext = 3\n":                                 {"table [worker]", "text"},
		"worker = 3\n":                                         {"table [worker]"},
		"[worker]\ntext = \n":                                  {"line 2"},
		"[worker]\ntext = \"a\"\ntext = \"b\"\n":               {"line 3", "text"},
		"[worker]\na = 1\nb = 2\n[nowhere]\n[worker.c]\nd = 1": {`key "a"`, `key "b"`, "[nowhere]", `"d"`},
	} {
		err := config.Decode("/etc/x.toml", []byte(text), config.Section{Name: "worker", Into: &everything{}})
		var all *config.Error
		if !errors.As(err, &all) || all.Path != "/etc/x.toml" {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %s", text, err, w)
			}
		}
	}
}

// A role reads its own tables; those of others only need a known name.
// One value of another type does not make strangers of the table's other keys.
func TestAFaultHidesNoKeys(t *testing.T) {
	set := config.Set[everything]{Default: func() everything { return everything{} }}
	for text, section := range map[string]config.Section{
		"[worker]\ntimeout_s = \"banana\"\ntext = \"a\"\non = true\nenv.x = \"1\"\ntime_s = 1\n": {Name: "worker", Into: &everything{}},
		"[projects.a]\ntimeout_s = \"banana\"\ntext = \"a\"\non = true\ntime_s = 1\n":            {Name: "projects", Into: &set},
	} {
		err := config.Decode("/etc/x.toml", []byte(text), section)
		var all *config.Error
		if !errors.As(err, &all) || len(all.Faults) != 2 || !strings.Contains(all.Faults[0], "timeout_s") || !strings.Contains(all.Faults[1], `"time_s"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAMarkOfByteOrderAndOtherLineEndsAreTaken(t *testing.T) {
	into := &everything{}
	if err := config.Decode("/etc/x.toml", []byte("\ufeff[worker]\r\ntimeout_s = 3"), config.Section{Name: "worker", Into: into}); err != nil || into.Time != 3 {
		t.Errorf("%+v, %v", into, err)
	}
}

func TestOtherTablesAreSkipped(t *testing.T) {
	e := everything{Text: "default"}
	err := config.Decode("f", []byte("[bus]\nwhatever = 1\n[worker]\non = true\n"), config.Section{Name: "worker", Into: &e})
	if err != nil || !e.On || e.Text != "default" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestEveryTableIsValidated(t *testing.T) {
	err := config.Decode("f", []byte("[worker]\ntimeout_s = -1\n[bus]\ntimeout_s = -1\n"),
		config.Section{Name: "worker", Into: &everything{}}, config.Section{Name: "bus", Into: &everything{}})
	var all *config.Error
	if !errors.As(err, &all) || len(all.Faults) != 2 || !strings.Contains(all.Faults[0], "table [worker]: timeout_s") || !strings.Contains(all.Faults[1], "table [bus]") {
		t.Errorf("%v", err)
	}
}

func TestLoadSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "banksman.toml")
	var all *config.Error
	if err := config.Load(path); !errors.As(err, &all) || all.Path != path || !strings.Contains(err.Error(), "'banksman init' makes one") {
		t.Error(err)
	}
	if err := config.Load(filepath.Dir(path)); !errors.As(err, &all) || strings.Contains(err.Error(), "init") {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("[worker]\ntext = \"a\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var e everything
	if err := config.Load(path, config.Section{Name: "worker", Into: &e}); err != nil || e.Text != "a" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestRenderedIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		in := everything{
			Text: text.Draw(t, "text"), Time: rapid.IntMin(0).Draw(t, "time"), Big: rapid.Int64().Draw(t, "big"), On: rapid.Bool().Draw(t, "on"),
			Share: rapid.Float64().Draw(t, "share"), List: rapid.SliceOfN(text, 0, 4).Draw(t, "list"), Env: rapid.MapOfN(text, text, 0, 4).Draw(t, "env"),
		}
		file := config.Render(config.Section{Name: "worker", Into: &in}, config.Section{Name: "bus", Into: &everything{}})
		var out everything
		if err := config.Decode("f", file, config.Section{Name: "worker", Into: &out}); err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		if len(out.Env) == 0 {
			out.Env = in.Env
		}
		if diff := cmp.Diff(in, out, cmp.AllowUnexported(everything{})); diff != "" {
			t.Fatalf("%s in\n%s", diff, file)
		}
	})
}

func TestRenderShowsTheManual(t *testing.T) {
	file := string(config.Render(config.Section{Name: "worker", Into: &everything{}}))
	if !strings.HasPrefix(file, "[worker]\n# A text.\ntext = \"\"\n# Seconds.\ntimeout_s = 0\n") || strings.Contains(file, "inner") {
		t.Error(file)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", "[worker]\ntimeout_s = 1\n", "[projects.one]\ndir = \"/b\"\n", "[projects]\na = 1\n", "[worker]\nenv = {a = \"b\"}\n", "x = 1", "[[worker]]\n", "[a.b.c]\nd.e = [1, {f = 2}]\n", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set := &config.Set[site]{Default: func() site { return site{Dir: "/"} }}
		err := config.Decode("f", []byte(text), config.Section{Name: "worker", Into: &everything{}, With: []config.Section{{Name: "projects", Into: set}}})
		var all *config.Error
		if err != nil && (!errors.As(err, &all) || len(all.Faults) == 0) {
			t.Errorf("%v", err)
		}
	})
}
