package front

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func shown(t *testing.T, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	d := &display{w: &out}
	for _, p := range parts {
		if _, err := d.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDisplayIsSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\r\nnext\n":                    "plain\ttext\nnext\n",
		"\x1b[31mred\x1b[0m":                       "red",
		"\x1b]0;title\x07after":                    "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"10%\r20%\r30%\n":                          "10%\n20%\n30%\n",
		"\x1b]unending\nnext":                      `\x1b]unending` + "\nnext",
		"bell\a nul\x00 del\x7f":                   `bell\a nul\x00 del\x7f`,
		"h\u00e9llo \U0001F600 \u65e5":             "h\u00e9llo \U0001F600 \u65e5",
		"bidi \u202e end":                          `bidi \u202e end`,
		"\x1b":                                     `\x1b`,
	} {
		if got := shown(t, in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
		if got := shown(t, strings.Split(in, "")...); got != want {
			t.Errorf("%q, in single characters, is shown as %q, want %q", in, got, want)
		}
	}
	if got, want := shown(t, "a\xfe\xff\xc3\x28z"), "a\uFFFD\uFFFD\uFFFD(z"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever a job writes, a terminal gets text and line breaks.
func FuzzDisplay(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b]0;x\x07\x9b1m\xc2\x9b2m\r\n\x00"), 3)
	f.Add([]byte("\xf0\x9f\x98\x80\x1bP q\x1b\\"), 1)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = max(0, min(at, len(text)))
		got := shown(t, string(text[:at]), string(text[at:]))
		if !utf8.ValidString(got) {
			t.Fatalf("%q is no text", got)
		}
		for _, r := range got {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q holds %q", got, r)
			}
		}
	})
}
