package front

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/imported"
	"github.com/banksman/banksman/services/internal/view"
)

func (a *app) importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Bring over what another program has kept", GroupID: "start", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.importAgentSafe())
	return cmd
}

func (a *app) importAgentSafe() *cobra.Command {
	var trail, list string
	var partial bool
	cmd := &cobra.Command{
		Use: "agent-safe", Short: "Keep the audit trail and the jobs of agent-safe as history to look at", Args: cobra.NoArgs,
		Long: "Read the audit trail of agent-safe (--audit, its JSONL file) and its jobs (--list, what\n'agent-safe list' prints), verify the chain of the trail, hold both against each other, and keep\nthem as history: 'ls --imported' and 'show' display it as what another program says. Nothing of\nit becomes a job or a decision of banksman. Secrets are replaced. Importing again replaces what\nwas kept. A trail that does not hold together is refused, or taken as far as it holds with\n--partial. Its policy is read by 'banksman policy import'.",
		RunE: func(*cobra.Command, []string) error {
			if trail == "" && list == "" {
				return usage("name --audit FILE, --list FILE or both", "import agent-safe: there is nothing to read")
			}
			h, err := readHistory(trail, list)
			if err != nil {
				return err
			}
			if h.Chain != nil && h.Chain.Fault != "" && !partial {
				return &exit{code: ExitError, err: &agentapi.Error{Code: "broken_chain", Message: fmt.Sprintf("import %s: line %d does not follow: %s; %d entries before it hold together", trail, h.Chain.Line, h.Chain.Fault, h.Chain.Entries),
					Next: "find out who changed the file; --partial takes what holds together"}}
			}
			l, _, err := a.site()
			if err != nil {
				return err
			}
			if err := imported.Save(l.State(), h); err != nil {
				return err
			}
			return a.print(summaryOf(h), func(w io.Writer) { importSummary(w, summaryOf(h)) })
		},
	}
	cmd.Flags().StringVar(&trail, "audit", "", "its audit trail, a JSONL file")
	cmd.Flags().StringVar(&list, "list", "", "what its list prints, a JSON file")
	cmd.Flags().BoolVar(&partial, "partial", false, "take a trail whose chain is broken as far as it holds together")
	return cmd
}

func readHistory(trail, list string) (imported.History, error) {
	var texts [2][]byte
	for i, path := range []string{trail, list} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err == nil && info.Size() > imported.MaxFile_bytes {
			err = fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), imported.MaxFile_bytes)
		}
		if err == nil {
			texts[i], err = os.ReadFile(path)
		}
		if err != nil {
			return imported.History{}, fmt.Errorf("read what to import: %w", err)
		}
		if texts[i] == nil {
			texts[i] = []byte{}
		}
	}
	h, err := imported.Read(texts[0], texts[1])
	if err != nil {
		return h, fmt.Errorf("import the history: %w", err)
	}
	return h, nil
}

// importTold is what an import has found.
type importTold struct {
	Program   string          `json:"program"`
	Jobs      int             `json:"jobs"`
	Chain     *imported.Chain `json:"chain"`
	Disagrees []string        `json:"disagrees"` // jobs about which trail and list differ
}

func summaryOf(h imported.History) importTold {
	s := importTold{Program: h.Program, Jobs: len(h.Jobs), Chain: h.Chain, Disagrees: []string{}}
	for _, j := range h.Jobs {
		if len(j.Disagrees) > 0 {
			s.Disagrees = append(s.Disagrees, j.ID)
		}
	}
	return s
}

func importSummary(w io.Writer, s importTold) {
	fmt.Fprintf(w, "%d jobs of %s; look at them with 'banksman ls --imported'\n", s.Jobs, s.Program)
	switch c := s.Chain; {
	case c == nil:
		fmt.Fprintln(w, "no audit trail was given, so nothing vouches for them")
	case c.Fault != "":
		fmt.Fprintf(w, "the trail holds together for %d entries; line %d does not follow: %s\n", c.Entries, c.Line, view.Printable(c.Fault))
	default:
		fmt.Fprintf(w, "the trail holds together: %d entries, the last with hash %s; the chain has no key\n", c.Entries, c.Head)
	}
	for _, id := range s.Disagrees {
		fmt.Fprintf(w, "trail and list disagree about job %s\n", view.Printable(id))
	}
}

// listImported lists the newest jobs of another program, newest first.
func (a *app) listImported(limit int) error {
	l, _, err := a.site()
	if err != nil {
		return err
	}
	h, err := imported.Load(l.State())
	if err != nil {
		return err
	}
	newest := []imported.Job{}
	for i := len(h.Jobs) - 1; i >= 0 && len(newest) < limit; i-- {
		newest = append(newest, h.Jobs[i])
	}
	return a.print(map[string]any{"imported": newest, "more": len(newest) < len(h.Jobs)}, func(w io.Writer) {
		if len(newest) == 0 {
			fmt.Fprintln(w, "nothing was imported")
			return
		}
		var rows [][]string
		for _, j := range newest {
			rows = append(rows, []string{view.Printable(short(j.ID)), view.Printable(j.Status), view.Printable(j.Approval), j.Created.Format(time.RFC3339), view.Printable(j.DecidedBy), clip(view.Command(j.Argv), 60)})
		}
		table(w, []string{"JOB OF AGENT-SAFE", "STATUS", "APPROVAL", "CREATED", "DECIDED BY", "COMMAND"}, rows)
	})
}

// showImported shows a job of another program; false when there is none.
func (a *app) showImported(prefix string) (bool, error) {
	l, _, err := a.site()
	if err != nil {
		return false, err
	}
	h, err := imported.Load(l.State())
	if err != nil {
		return false, err
	}
	j, found := h.Find(prefix)
	if !found {
		return false, nil
	}
	return true, a.print(j, func(w io.Writer) { importedJob(w, j) })
}

func importedJob(w io.Writer, j imported.Job) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-11s %s\n", name, view.Printable(text))
		}
	}
	fmt.Fprintf(w, "imported from %s, which says all of this; banksman has neither decided nor run it\n", j.Imported)
	line("job", j.ID)
	line("status", j.Status+", "+j.Approval)
	fmt.Fprintf(w, "%-11s %s\n", "command", view.Command(j.Argv))
	line("in", j.Cwd)
	line("source", j.Source)
	line("decided by", j.DecidedBy)
	line("because", j.Reason)
	if j.ExitCode != nil {
		line("result", fmt.Sprintf("exit %d", *j.ExitCode))
	}
	line("error", j.Error)
	for _, e := range j.Entries {
		line("entry", e)
	}
	for _, d := range j.Disagrees {
		line("DISAGREES", d)
	}
	line("stdout", j.Stdout)
	line("stderr", j.Stderr)
}
