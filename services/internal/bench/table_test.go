package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// figure is one line of the table.
type figure struct {
	what  string
	value string
	floor string  // what it is measured against, measured in this run
	ratio float64 // 0 for none
	goal  string
	met   bool
	none  bool // there is no goal
}

func printTable(w io.Writer, list []figure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tMEASURED\tFLOOR OF THE SAME RUN\tRATIO\tGOAL\t")
	for _, f := range list {
		ratio, verdict := "", "missed"
		if f.ratio != 0 {
			ratio = fmt.Sprintf("%.2f", f.ratio)
		}
		switch {
		case f.none:
			verdict = ""
		case f.met:
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.what, f.value, f.floor, ratio, f.goal, verdict)
	}
	t.Flush()
}
