package front_test

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/banksman/banksman/services/internal/lab"
)

// On a terminal init asks twice for the passphrase, approve once, and neither
// shows it.
func TestPassphraseOnATerminal(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, unraced)
	s.Dir = filepath.Join(t.TempDir(), "site")
	shown := dialogue(t, s, []string{"init"}, "correct horse battery", "correct horse battery")
	if !strings.Contains(shown, "Made site") {
		t.Fatalf("init said:\n%s", shown)
	}
	s.Up()
	s.Must(0, "propose", "--", "sh", "-c", "true")
	j := pending(t, s)
	if shown := dialogue(t, s, []string{"approve", j.Job}, "correct horse battery"); !strings.Contains(shown, "approved, good until") {
		t.Errorf("approve said:\n%s", shown)
	}
}

// dialogue runs a verb on a terminal of its own, gives an answer to each prompt,
// and returns everything that was shown.
func dialogue(t *testing.T, s *lab.Site, args []string, answers ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*lab.Patience)
	defer cancel()
	cmd := s.Command(ctx, args...)
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var shown strings.Builder
	r := bufio.NewReader(io.TeeReader(tty, &shown))
	for _, a := range answers {
		prompt := ""
		asked := func() bool { // a long prompt is wrapped, also before its last space
			lines := strings.Split(strings.ReplaceAll(prompt, "banksman: ", ""), "\n")
			last := strings.TrimSpace(strings.Join(lines[max(0, len(lines)-3):], ""))
			return strings.HasSuffix(last, ":") && strings.HasSuffix(prompt, " ") && (strings.Contains(last, "assphrase") || strings.Contains(last, "again"))
		}
		for !asked() {
			b, err := r.ReadByte()
			if err != nil {
				t.Fatalf("no prompt: %v\n%s", err, shown.String())
			}
			prompt += string(b)
		}
		if _, err := io.WriteString(tty, a+"\r"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatalf("no line after the answer: %v\n%s", err, shown.String())
		}
	}
	io.Copy(io.Discard, r) // ends with an error when the process does
	if err := cmd.Wait(); err != nil {
		t.Fatalf("banksman %q: %v\n%s", args, err, shown.String())
	}
	for _, a := range answers {
		if strings.Contains(shown.String(), a) {
			t.Errorf("the terminal showed the passphrase:\n%s", shown.String())
		}
	}
	return shown.String()
}
