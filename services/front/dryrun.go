package front

import (
	"fmt"
	"io"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// dryRun prints what would become of a command. It exits as assess does, and as
// an error where the worker that was asked could not run it.
func (a *app) dryRun(d query.DryRun) error {
	verdict := d.Verdict()
	code, ok := map[string]int{"allow": ExitOK, "ask": ExitPending, "deny": ExitDenied}[verdict.Verdict]
	if err := a.print(d, func(w io.Writer) { showDryRun(w, d) }); err != nil {
		return err
	}
	switch {
	case d.Preview != nil && d.Preview.Fault != nil && verdict.Verdict != "deny":
		return &agentapi.Error{Code: d.Preview.Fault.Code, Message: fmt.Sprintf("worker %s could not run it: %s", d.Preview.Worker, view.Printable(d.Preview.Fault.Reason)),
			Next: "correct the command, or ask for a pool whose workers see its files"}
	case !ok || code != ExitOK:
		return &exit{code: code}
	}
	return nil
}

func showDryRun(w io.Writer, d query.DryRun) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s "+format+"\n", append([]any{name}, args...)...)
	}
	p, v := d.Preview, d.Verdict()
	if p != nil && p.Fault == nil {
		file := func(name string, f events.FileDigest) { line(name, "%s sha256 %s", view.Printable(f.Path), f.SHA256) }
		file("program", p.Program)
		for _, f := range p.Files {
			file("file", f)
		}
		line("directory", "%s", view.Printable(p.Cwd))
		line("bound", "%s", p.Bound)
	}
	if p != nil {
		line("on", "%s, one of the workers of its pool", p.Worker)
		if len(p.Executor) > 0 {
			line("executor", "%s", view.Command(p.Executor))
		}
		line("variables", "%s", view.Printable(strings.Join(p.Env, " ")))
		if len(p.Secrets) > 0 {
			line("secrets", "in %s", view.Printable(strings.Join(p.Secrets, " ")))
		}
		line("limits", "%s", limitsText(p.Limits))
		line("walls", "%s", wallsText(p))
	}
	if d.NoPreview != "" {
		line("unseen", "%s", view.Printable(d.NoPreview))
	}
	rule := v.Rule
	if rule == "" {
		rule = "no rule"
	}
	line("verdict", "%s (%s): %s", v.Verdict, rule, view.Printable(v.Reason))
	if v.Instead != "" {
		line("instead", "%s", view.Printable(v.Instead))
	}
	fmt.Fprintln(w, "nothing was started, and nothing stored")
}

func limitsText(l query.Limits) string {
	out := []string{fmt.Sprintf("%d s, then %d s to end", l.TimeoutS, l.GraceS), fmt.Sprintf("%d bytes of each output kept", l.OutputBytes)}
	for _, one := range []struct {
		value  int64
		format string
	}{
		{l.CPUS, "%d s of processor"}, {l.MemoryBytes, "%d bytes of memory"}, {l.OpenFiles, "%d open files"},
		{l.Processes, "%d processes"}, {l.FileBytes, "%d bytes in a file"}, {int64(l.Nice), "nice %d"},
	} {
		if one.value != 0 {
			out = append(out, fmt.Sprintf(one.format, one.value))
		}
	}
	out = append(out, fmt.Sprintf("umask %04o", l.Umask))
	if l.User != "" {
		out = append(out, "user "+l.User)
	}
	return strings.Join(out, ", ")
}

func wallsText(p *query.Previewed) string {
	if len(p.Walls) == 0 {
		return "none: it could reach banksman's own files"
	}
	text := strings.Join(p.Walls, ", ")
	if len(p.ReachWrite) > 0 {
		text += "; may change " + view.Printable(strings.Join(p.ReachWrite, " "))
	}
	if len(p.ReachRead) > 0 {
		text += "; may read " + view.Printable(strings.Join(p.ReachRead, " "))
	}
	return text
}
