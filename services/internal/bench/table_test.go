package bench

import (
	"encoding/json/v2"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// figure is one line of the table. What is measured and its floor are in the same
// unit; where the ratio is of other numbers, note says which.
type figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  unit    `json:"unit"`
	Floor float64 `json:"floor,omitzero"` // what it is measured against, measured in this run
	Of    string  `json:"floor_of,omitempty"`
	Ratio float64 `json:"ratio,omitzero"`
	Goal  string  `json:"goal,omitempty"` // empty for none
	Met   bool    `json:"met,omitzero"`
	Note  string  `json:"note,omitempty"`
}

// unit is what a number counts.
type unit string

const (
	perSecond    unit = "per_s"
	perCPUSecond unit = "per_cpu_s"
	milliseconds unit = "ms"
	megabytes    unit = "mb"
	bytes        unit = "bytes"
	times        unit = "x"
)

// inMS is a duration as figures have it.
func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// show writes a number for people.
func (u unit) show(v float64) string {
	switch u {
	case perSecond:
		return fmt.Sprintf("%.0f/s", v)
	case perCPUSecond:
		return fmt.Sprintf("%.0f/cpu-s", v)
	case milliseconds:
		return time.Duration(v * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
	case megabytes:
		return fmt.Sprintf("%.1f MB", v)
	case bytes:
		return fmt.Sprintf("%.0f B", v)
	}
	return fmt.Sprintf("%.2f x", v)
}

func printTable(w io.Writer, list []figure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tMEASURED\tFLOOR OF THE SAME RUN\tRATIO\tGOAL\t\t")
	for _, f := range list {
		floor, ratio, verdict := "", "", "missed"
		if f.Floor != 0 {
			floor = f.Unit.show(f.Floor) + " " + f.Of
		}
		if f.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", f.Ratio)
		}
		switch {
		case f.Goal == "":
			verdict = ""
		case f.Met:
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.What, f.Unit.show(f.Value), floor, ratio, f.Goal, verdict, f.Note)
	}
	t.Flush()
}

// printJSON writes one object a line, for programs.
func printJSON(w io.Writer, list []figure) error {
	for _, f := range list {
		if err := json.MarshalWrite(w, f, json.Deterministic(true)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}
