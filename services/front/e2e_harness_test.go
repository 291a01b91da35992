package front_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// binary is the banksman under test, built once for the package; unraced is the
// same without the race detector, for tests that harden passphrases.
var binary, unraced string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == engineWord {
		os.Exit(engine(os.Args[2:]))
	}
	flag.Parse()
	err := flag.Set("test.parallel", strconv.Itoa(atOnceTests()))
	var dir string
	if err == nil {
		dir, err = os.MkdirTemp("", "banksman-e2e-")
	}
	if err == nil {
		binary, err = lab.Build(dir, "cmd/banksman")
	}
	if err == nil {
		unraced, err = lab.BuildPlain(dir, "cmd/banksman")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// atOnceTests is how many stories are told beside each other. They wait for other
// processes most of the time, so that the number of processors says little.
func atOnceTests() int {
	if lab.RaceEnabled {
		return max(3, runtime.GOMAXPROCS(0))
	}
	return max(6, runtime.GOMAXPROCS(0))
}

// inbox returns what waits for a person.
func inbox(t *testing.T, s *lab.Site) []view.Job {
	t.Helper()
	var list view.List
	s.Must(0, "inbox", "--json").JSON(t, &list)
	return list.Jobs
}

// pending waits until one job waits for a person, and returns it.
func pending(t *testing.T, s *lab.Site) view.Job {
	t.Helper()
	var found []view.Job
	lab.Eventually(t, "a job in the inbox", func() bool {
		found = inbox(t, s)
		return len(found) == 1
	})
	return found[0]
}

// show returns a job in full.
func show(t *testing.T, s *lab.Site, id string) view.Detail {
	t.Helper()
	var j view.Detail
	s.Must(0, "show", "--json", id).JSON(t, &j)
	return j
}

// verdict is one of the four of audit verify.
type verdict struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

// verdicts are what audit verify --json prints.
type verdicts struct {
	Integrity    verdict `json:"integrity"`
	Authenticity verdict `json:"authenticity"`
	Completeness verdict `json:"completeness"`
	Freshness    verdict `json:"freshness"`
	Size         int64   `json:"size"`
	Root         string  `json:"root"`
}
