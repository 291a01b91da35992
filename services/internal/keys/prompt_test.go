package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// person sits at the master side of a pseudo terminal.
type person struct {
	t      *testing.T
	screen *os.File
	seen   bytes.Buffer // everything that was ever shown
	unread int          // how much of it was already waited for
}

// waitFor reads the screen until it shows text once more.
func (p *person) waitFor(text string) {
	p.t.Helper()
	chunk := make([]byte, 1024)
	for {
		if at := strings.Index(p.seen.String()[p.unread:], text); at >= 0 {
			p.unread += at + len(text)
			return
		}
		n, err := p.screen.Read(chunk)
		p.seen.Write(chunk[:n])
		if err != nil {
			p.t.Fatalf("waiting for %q: %v; the screen shows %q", text, err, p.seen.String())
		}
	}
}

func (p *person) typeIn(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.screen, keys); err != nil {
		p.t.Fatal(err)
	}
}

func openTerminal(t *testing.T) (*person, *os.File) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); master.Close() })
	return &person{t: t, screen: master}, tty
}

type asked struct {
	passphrase []byte
	err        error
}

// converse runs ask while the person goes through pairs of (wait for, type).
func converse(p *person, ask func() ([]byte, error), steps ...string) asked {
	p.t.Helper()
	result := make(chan asked, 1)
	go func() {
		passphrase, err := ask()
		result <- asked{passphrase, err}
	}()
	for i := 0; i < len(steps); i += 2 {
		p.waitFor(steps[i])
		p.typeIn(steps[i+1])
	}
	return <-result
}

func TestAskNewPassphrase(t *testing.T) {
	const first, again = "New passphrase: ", "The same again: "
	for name, c := range map[string]struct {
		steps []string
		want  string
		err   error
	}{
		"alike":          {[]string{first, "correct horse\r", again, "correct horse\r"}, "correct horse", nil},
		"not ascii":      {[]string{first, "größere Höhe\r", again, "größere Höhe\r"}, "größere Höhe", nil},
		"corrected":      {[]string{first, "correct hors\x7fse\r", again, "correct horse\r"}, "correct horse", nil},
		"once differing": {[]string{first, "correct horse\r", again, "correct house\r", "The two differ.", "", first, "battery staple\r", again, "battery staple\r"}, "battery staple", nil},
		"too short":      {[]string{first, "short\r", "8 characters", "", first, "correct horse\r", again, "correct horse\r"}, "correct horse", nil},
		"never alike":    {[]string{first, "correct horse\r", again, "1\r", first, "\r", first, "correct horse\r", again, "2\r"}, "", ErrPassphrasesDiffer},
		"Ctrl-C":         {[]string{first, "corr\x03"}, "", ErrPromptEnded},
		"Ctrl-D":         {[]string{first, "correct horse\r", again, "\x04"}, "", ErrPromptEnded},
	} {
		t.Run(name, func(t *testing.T) {
			p, tty := openTerminal(t)
			before, err := term.GetState(int(tty.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			got := converse(p, func() ([]byte, error) { return AskNewPassphrase(tty, tty) }, c.steps...)
			if string(got.passphrase) != c.want || !errors.Is(got.err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got.passphrase, got.err, c.want, c.err)
			}
			after, err := term.GetState(int(tty.Fd()))
			if err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("the terminal is not as it was: %v", err)
			}
			fmt.Fprint(tty, "the end")
			p.waitFor("the end")
			for _, word := range []string{"horse", "staple", "corr", "Höhe"} {
				if strings.Contains(p.seen.String(), word) {
					t.Errorf("the screen shows %q", p.seen.String())
				}
			}
		})
	}
}

func TestAskPassphraseOnDevice(t *testing.T) {
	p, tty := openTerminal(t)
	got := converse(p, func() ([]byte, error) { return AskPassphrase(tty.Name(), "Passphrase for x: ") }, "Passphrase for x: ", "correct horse\r")
	if string(got.passphrase) != "correct horse" || got.err != nil {
		t.Errorf("got %q, %v", got.passphrase, got.err)
	}
}

func TestAskWithoutTerminal(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	_, err = AskNewPassphrase(reader, io.Discard)
	wantErr(t, err, ErrNoTerminal)
	for _, device := range []string{"/dev/null", filepath.Join(t.TempDir(), "nowhere")} {
		_, err = AskPassphrase(device, "x")
		wantErr(t, err, ErrNoTerminal)
	}
}

const asAsker = "KEYS_TEST_ASK"

// TestAskerProcess is no test: run as a process of its own, it asks on its
// controlling terminal and says what came of it.
func TestAskerProcess(t *testing.T) {
	if os.Getenv(asAsker) == "" {
		return // run as part of the suite, there is nothing to do
	}
	passphrase, err := AskPassphrase("", "Passphrase: ")
	if errors.Is(err, ErrNoTerminal) {
		fmt.Println("no terminal")
		os.Exit(0)
	}
	fmt.Println(TokenDigest(string(passphrase)), err)
	os.Exit(0)
}

func asker(t *testing.T) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAskerProcess$")
	cmd.Env = append(os.Environ(), asAsker+"=1")
	return cmd
}

// The controlling terminal is asked, whatever standard input and output are.
func TestAskPassphraseOnControllingTerminal(t *testing.T) {
	p, tty := openTerminal(t)
	cmd := asker(t)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &out, []*os.File{tty}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.waitFor("Passphrase: ")
	p.typeIn("correct horse\r")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := TokenDigest("correct horse") + " <nil>\n"; out.String() != want {
		t.Errorf("the process says %q, want %q", out.String(), want)
	}
}

func TestAskPassphraseWithoutControllingTerminal(t *testing.T) {
	cmd := asker(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "no terminal\n" {
		t.Errorf("the process says %q, %v", out, err)
	}
}

func TestReadPassphraseFile(t *testing.T) {
	path := filepath.Join(folder(t), "passphrase")
	for text, want := range map[string]string{
		"correct horse": "correct horse", "correct horse\n": "correct horse", "correct horse\r\nmore\n": "correct horse", " x \n": " x ",
		strings.Repeat("x", passphraseLimit_bytes) + "\r\n": strings.Repeat("x", passphraseLimit_bytes),
	} {
		got, err := ReadPassphraseFile(mustWrite(t, path, text, 0o600))
		if err != nil || string(got) != want {
			t.Errorf("%.20q: got %.20q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "\r\n", "\nsecond"} {
		_, err := ReadPassphraseFile(mustWrite(t, path, text, 0o600))
		wantErr(t, err, ErrEmptyPassphrase, path)
	}
	for _, text := range []string{"a\x00b", "\xff\xfe", strings.Repeat("x", passphraseLimit_bytes+1)} {
		if _, err := ReadPassphraseFile(mustWrite(t, path, text, 0o600)); err == nil {
			t.Errorf("%.20q is accepted", text)
		}
	}
	_, err := ReadPassphraseFile(mustWrite(t, path, "correct horse", 0o644))
	wantErr(t, err, ErrExposed, "chmod 600 "+path)
	if _, err := ReadPassphraseFile(filepath.Dir(path)); err == nil {
		t.Error("a folder is accepted")
	}
}

func TestReadPassphraseFromPipe(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := io.WriteString(writer, "correct horse\n"); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	got, err := ReadPassphraseFile(fmt.Sprintf("/dev/fd/%d", reader.Fd()))
	if err != nil || string(got) != "correct horse" {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzFirstLine(f *testing.F) {
	for _, text := range []string{"x\n", "\r\n", "a\rb", "\x00", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := firstLine(text)
		if err == nil && (len(line) == 0 || bytes.ContainsAny(line, "\n\x00") || !bytes.HasPrefix(text, line)) {
			t.Errorf("%q became %q", text, line)
		}
	})
}
