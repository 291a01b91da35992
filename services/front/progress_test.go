package front

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgressIsDrawnForEyesOnly(t *testing.T) {
	var out bytes.Buffer
	p := progress{w: &out}
	p.show(1, 2)
	p.end()
	if out.Len() > 0 {
		t.Errorf("drawn although nobody looks: %q", out.String())
	}
	p.on = true
	p.end()
	p.show(1, 2)
	p.show(2, 2) // too soon
	p.drawn = time.Time{}
	p.show(0, 0)
	p.show(9, 8)
	p.end()
	text := out.String()
	if strings.Count(text, "leaves") != 2 || !strings.Contains(text, "[###############...............] 1 of 2 leaves") ||
		!strings.Contains(text, "8 of 8 leaves") || !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("drawn %q", text)
	}
}
