package lifecycle_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
)

var update = flag.Bool("update", false, "write what the stories and the table of answers say today")

// A story is a text file: paragraphs of acts, "----", and what becomes of the
// job, one line an act. "wait 10m" lets the stream's time pass, "forge" stores
// an event that nobody believes, "#" begins a remark.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("../testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories (%v)", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(want))
			if *update && got != string(want) {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("the story goes another way:\n%s", got)
			}
		})
	}
}

// tell plays the acts of a story and puts their answers below them.
func tell(t *testing.T, story string) string {
	w := newWorld()
	var out []string
	for _, paragraph := range strings.Split(strings.TrimSpace(story), "\n\n") {
		told, _, _ := strings.Cut(paragraph+"\n", "\n----\n")
		var answers []string
		for line := range strings.Lines(strings.TrimSuffix(told, "\n") + "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				answers = append(answers, play(t, w, line))
			}
		}
		told = strings.TrimSuffix(told, "\n")
		if len(answers) > 0 {
			told += "\n----\n" + strings.Join(answers, "\n")
		}
		out = append(out, told)
	}
	return strings.Join(out, "\n\n") + "\n"
}

func play(t *testing.T, w *world, line string) string {
	switch verb, rest, _ := strings.Cut(line, " "); {
	case verb == "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(d)
		return describe(w, nil)
	case verb == "forge":
		w.stored = append(w.stored, w.stored[len(w.stored)-1])
		w.job = lifecycle.Taint(w.job, uint64(len(w.stored)), "bad_signature")
		return describe(w, nil)
	default:
		return describe(w, w.do(line))
	}
}

// describe is one line about the job for a reader who knows the trade.
func describe(w *world, err error) string {
	j := &w.job
	line := fmt.Sprintf("%d %s", len(w.stored), j.Status)
	if n := len(j.Approvals); n > 0 || j.Quorum > 0 {
		line += fmt.Sprintf(" approvals=%d/%d", n, j.Quorum)
	}
	if c := j.Current(); c != nil {
		line += fmt.Sprintf(" attempt=%d/%d@%s", c.N, j.AttemptsAllowed(), c.Worker)
		if c.Late {
			line += " late:" + c.Result.Outcome
		}
	}
	if j.Unresolved {
		line += " unresolved"
	}
	if j.Ready(w.now) {
		line += " ready"
	}
	if j.Tainted {
		line += " tainted:" + j.TaintCode
	}
	var refused *lifecycle.Refusal
	if errors.As(err, &refused) {
		line += " <- " + refused.Code + ": " + refused.Why
	}
	return line
}
