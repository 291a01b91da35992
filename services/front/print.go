package front

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/banksman/banksman/services/internal/view"
)

// print writes an object as JSON, or lets people write it for people.
func (a *app) print(v any, people func(io.Writer)) error {
	if !a.json {
		people(a.out)
		return nil
	}
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	fmt.Fprintf(a.out, "%s\n", text)
	return nil
}

// table writes aligned columns.
func table(w io.Writer, head []string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// jobTable lists jobs for people.
func jobTable(w io.Writer, list view.List, now time.Time) {
	if len(list.Jobs) == 0 {
		fmt.Fprintln(w, "no jobs")
		return
	}
	var rows [][]string
	for _, j := range list.Jobs {
		rows = append(rows, []string{short(j.Job), statusText(j), age(now.Sub(j.Created)), view.Printable(j.Proposer), clip(view.Command(j.Argv), 60), clip(why(j), 70)})
	}
	table(w, []string{"JOB", "STATUS", "AGE", "PROPOSER", "COMMAND", "WHY"}, rows)
	if list.More {
		fmt.Fprintln(w, "... and more; raise --limit")
	}
}

// short is an id's end that tells jobs of one minute apart: the random part of
// a UUIDv7 comes last, so lists show a prefix long enough to be unique.
func short(id string) string { return id[:min(len(id), 18)] }

func statusText(j view.Job) string {
	s := string(j.Status)
	if j.Unresolved {
		s += ", unresolved"
	}
	if j.Unsafe && !j.Status.Final() {
		s += ", shared user"
	}
	if j.Tainted != "" {
		s += ", tainted"
	}
	if j.ExitCode != nil {
		s += fmt.Sprintf(" (exit %d)", *j.ExitCode)
	}
	if !j.RetryAt.IsZero() {
		s += ", again at " + j.RetryAt.Format(time.RFC3339)
	}
	return s
}

// why is the sentence that explains a job's state best.
func why(j view.Job) string {
	switch {
	case j.Tainted != "":
		return "an event that breaks a rule was stored: " + j.Tainted
	case j.Ending != "":
		return view.Printable(j.Ending)
	case j.Ruling != nil:
		return view.Printable(j.Ruling.Reason)
	}
	return view.Printable(j.Reason)
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// age rounds a duration to its leading unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
