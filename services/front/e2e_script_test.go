package front_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// scripted is a site that runs any shell text without asking, for tests of what
// becomes of a job and not of who allows it.
type scripted struct {
	*lab.Site
	t      *testing.T
	script string // runs its first argument as shell text
	work   string // the jobs' folder
}

// newScripted makes such a site; set are table, key and value of its
// configuration. It does not run yet.
func newScripted(t *testing.T, set ...[3]string) *scripted {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{t: t, script: filepath.Join(dir, "run.sh"), work: filepath.Join(dir, "work")}
	policy := fmt.Sprintf("version = 1\n\n[[rule]]\nid = \"scripts\"\nprogram = %q\nenv = [\"TEXT\", \"PASS\"]\ndecision = \"allow\"\n", s.script)
	for path, text := range map[string]string{s.script: "#!/bin/sh\neval \"$1\"\n", dir + "/policy.toml": policy} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(s.work, 0o777); err != nil {
		t.Fatal(err)
	}
	s.Site = lab.NewSite(t, binary, "--policy", dir+"/policy.toml")
	for _, c := range append([][3]string{{"worker", "grace_s", "1"}}, set...) {
		s.Set(c[0], c[1], c[2])
	}
	return s
}

// propose asks for a shell text and returns the job.
func (s *scripted) propose(text string, flags ...string) string {
	s.t.Helper()
	args := append([]string{"propose", "--cwd", s.work}, flags...)
	return strings.TrimSpace(s.Must(0, append(args, "--", s.script, text)...).Stdout)
}

// ends waits for the end of a job and returns it with its output.
func (s *scripted) ends(job string) view.Detail {
	s.t.Helper()
	lab.Eventually(s.t, "job "+job+" to end", func() bool { return show(s.t, s.Site, job).Status.Final() })
	return show(s.t, s.Site, job)
}

// does proposes a shell text and waits for its end.
func (s *scripted) does(text string, flags ...string) view.Detail {
	s.t.Helper()
	return s.ends(s.propose(text, flags...))
}

// awaitFile waits until a job has made a file in its folder.
func (s *scripted) awaitFile(name string) {
	s.t.Helper()
	lab.Eventually(s.t, "the job to make "+name, func() bool {
		_, err := os.Stat(filepath.Join(s.work, name))
		return err == nil
	})
}

// left lists the living processes whose working directory is the jobs': whatever
// came out of a job, unless it went elsewhere.
func (s *scripted) left() (list []string) {
	s.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(all) == 0 {
		s.t.Fatalf("processes are looked for in /proc: %v", err)
	}
	for _, link := range all {
		if dir, err := os.Readlink(link); err == nil && dir == s.work {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			list = append(list, fmt.Sprintf("%s: %s", filepath.Base(filepath.Dir(link)), bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return list
}
