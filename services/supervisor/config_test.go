package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/config"
)

const oneProject = `[supervisor]
drain_s = 7
[projects.demo]
work_dir = "/srv/demo"
agent = ["claude", "-p"]
prompt_file = "PROMPT.md"
max_rounds = 3
env = {A = "b"}
`

func TestConfigHoldsProjects(t *testing.T) {
	s := New()
	if err := config.Decode("f", []byte(oneProject), s.Section()); err != nil {
		t.Fatal(err)
	}
	p := s.projects.Tables["demo"]
	if s.cfg.DrainS != 7 || p == nil || !p.Enabled || p.PromptBy != byStdin || p.RoundTimeLimitS != 1800 || p.MaxRounds != 3 || p.Env["A"] != "b" {
		t.Errorf("%+v %+v", s.cfg, p)
	}
	again := New()
	if err := config.Decode("f", config.Render(s.Section()), again.Section()); err != nil || again.projects.Tables["demo"].MaxRounds != 3 {
		t.Errorf("what is rendered is not read back: %v", err)
	}
}

func TestConfigRefusesAndSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown key":      {"max_rounds", "max_round", `line 7: table [projects.demo] has no key "max_round"; did you mean "max_rounds"?`},
		"relative folder":  {`"/srv/demo"`, `"demo"`, "must be an absolute folder"},
		"no agent":         {`["claude", "-p"]`, `[]`, "name the program"},
		"no prompt":        {`"PROMPT.md"`, `""`, "prompt_file is required"},
		"stray place":      {`"-p"`, `"{prompt}"`, "only argv replaces"},
		"argv, no place":   {"max_rounds", "prompt_by = \"argv\"\nmax_rounds", "no argument of agent holds {prompt}"},
		"unknown way":      {"max_rounds", "prompt_by = \"pipe\"\nmax_rounds", "must be stdin or argv"},
		"limit":            {"max_rounds", "round_time_limit_s = 0\nmax_rounds", "round_time_limit_s = 0: must be 1 to 604800"},
		"own variable":     {"A = ", "BANKSMAN_TOKEN = ", "belongs to banksman itself"},
		"bad name":         {"projects.demo", "projects.Demo", `"demo" would do`},
		"long name":        {"projects.demo", "projects." + strings.Repeat("d", 25), "at most 24 characters"},
		"shared folder":    {"[projects.demo]", "[projects.two]\nwork_dir = \"/srv/demo/\"\nagent = [\"x\"]\nprompt_file = \"p\"\n[projects.demo]", "agents need folders of their own"},
		"supervisor range": {"drain_s = 7", "drain_s = -1", "drain_s = -1: must be 0 to 86400"},
	} {
		err := config.Decode("f", []byte(strings.Replace(oneProject, c.from, c.to, 1)), New().Section())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	off := strings.Replace(oneProject, "work_dir = \"/srv/demo\"", "enabled = false", 1)
	if err := config.Decode("f", []byte(off), New().Section()); err != nil {
		t.Errorf("a project that is not enabled may be half written: %v", err)
	}
}

func TestWorkDirKeepsAwayFromBanksmansFolder(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	own := filepath.Join(base, "home", "banksman")
	for _, dir := range []string{own, filepath.Join(own, "state", "w"), filepath.Join(base, "work"), filepath.Join(base, "home", "banksman2")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.Symlink(filepath.Join(own, "state"), filepath.Join(base, "link")))
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o644))
	for dir, good := range map[string]bool{
		"work": true, "home/banksman2": true, "home/banksman": false, "home/banksman/state/w": false, "home": false, ".": false,
		"link": false, "missing": false, "file": false,
	} {
		real, err := workDir(filepath.Join(base, dir), own)
		if (err == nil) != good || good && real != filepath.Join(base, dir) {
			t.Errorf("%s: %q, %v", dir, real, err)
		}
	}
}
