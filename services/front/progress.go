package front

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress draws how far something long has come on a line of a terminal, a few times
// in a second, and takes the line away at the end.
type progress struct {
	w     io.Writer
	on    bool // somebody looks
	drawn time.Time
}

const (
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

func (p *progress) show(done, all int64) {
	if !p.on || all <= 0 || time.Since(p.drawn) < progressEvery {
		return
	}
	p.drawn = time.Now()
	done = min(done, all)
	full := int(done * progressWidth / all)
	fmt.Fprintf(p.w, "\r\x1b[K[%s%s] %d of %d leaves", strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), done, all)
}

// end clears the line.
func (p *progress) end() {
	if p.on && !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
