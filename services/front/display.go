package front

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/banksman/banksman/services/internal/view"
)

// sequenceBytes is how long an escape sequence may be before it counts as text.
const sequenceBytes = 1024

// display makes what a job wrote safe for the terminal of whoever reads it:
// escape sequences go, other control and invisible characters and bytes that are
// no text appear as escapes, a carriage return becomes a line break, so that
// nothing is written over. A sequence that does not end within its line is shown
// and not obeyed. The zero value with a writer is ready.
type display struct {
	w    io.Writer
	held []byte // may go on in the next write
}

func (d *display) Write(p []byte) (int, error) {
	var out []byte
	text := append(d.held, p...)
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		shown, held := neutral(line, whole)
		out = append(out, shown...)
		if !whole {
			d.held = bytes.Clone(held)
			break
		}
		out, text = append(out, '\n'), rest
	}
	if _, err := d.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes what was held back.
func (d *display) flush() error {
	shown, _ := neutral(d.held, true)
	d.held = nil
	_, err := d.w.Write(shown)
	return err
}

// neutral returns what to show of a line, and unless it is whole what must wait
// for the rest of it.
func neutral(line []byte, whole bool) (out, held []byte) {
	show := func(n int) {
		out = append(out, view.Printable(string(line[:n]))...)
		line = line[n:]
	}
	for len(line) > 0 {
		if !whole && (!utf8.FullRune(line) || len(line) == 1 && line[0] == '\r') {
			return out, line
		}
		near := line[:min(len(line), sequenceBytes)]
		_, width, n, state := ansi.DecodeSequence(near, ansi.NormalState, nil)
		switch {
		case state != ansi.NormalState && !whole && len(near) < sequenceBytes:
			return out, line
		case state != ansi.NormalState || n == 0:
			show(1)
		case width == 0 && n > 1 && (line[0] == ansi.ESC || line[0] >= 0x80 && line[0] < 0xa0):
			line = line[n:]
		case line[0] == '\t':
			out, line = append(out, '\t'), line[1:]
		case line[0] == '\r':
			if line = line[1:]; len(line) > 0 {
				out = append(out, '\n')
			}
		default:
			show(n)
		}
	}
	return out, nil
}
