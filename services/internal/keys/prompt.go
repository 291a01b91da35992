package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// passphraseShortest_runes is the lower bound for a new passphrase.
	passphraseShortest_runes = 8
	// passphraseTries bounds how often a person may mistype a new passphrase.
	passphraseTries = 3
	// passphraseLimit_bytes bounds the first line of a passphrase file.
	passphraseLimit_bytes = 4096
)

// AskNewPassphrase asks for a new passphrase twice, without echo, on the terminal
// in, and writes prompts to out. It starts over when the two differ or the first
// is shorter than eight characters, three times at most ([ErrPassphrasesDiffer]).
// When in is no terminal it is [ErrNoTerminal]; Ctrl-C and Ctrl-D end the prompt
// with [ErrPromptEnded].
func AskNewPassphrase(in *os.File, out io.Writer) ([]byte, error) {
	return onTerminal(in, out, func(screen *term.Terminal) ([]byte, error) {
		for range passphraseTries {
			first, err := screen.ReadPassword("New passphrase: ")
			if err != nil {
				return nil, err
			}
			if utf8.RuneCountInString(first) < passphraseShortest_runes {
				fmt.Fprintf(screen, "It must have %d characters or more.\n", passphraseShortest_runes)
				continue
			}
			second, err := screen.ReadPassword("The same again: ")
			if err != nil {
				return nil, err
			}
			if first == second {
				return []byte(first), nil
			}
			fmt.Fprintln(screen, "The two differ.")
		}
		return nil, ErrPassphrasesDiffer
	})
}

// AskPassphrase asks for a passphrase once, without echo, on the terminal device
// tty; an empty tty means /dev/tty, the terminal of the process whatever its
// standard input is. Without a terminal it is [ErrNoTerminal].
func AskPassphrase(tty, prompt string) ([]byte, error) {
	if tty == "" {
		tty = "/dev/tty"
	}
	device, err := os.OpenFile(tty, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("keys: ask for a passphrase: %w: %w; give a passphrase file instead", ErrNoTerminal, err)
	}
	defer device.Close()
	return onTerminal(device, device, func(screen *term.Terminal) ([]byte, error) {
		answer, err := screen.ReadPassword(prompt)
		return []byte(answer), err
	})
}

// onTerminal runs a dialogue with the terminal in raw mode. In raw mode Ctrl-C is
// a character and no signal, so that the process cannot die from it and leave
// the terminal without echo.
func onTerminal(in *os.File, out io.Writer, dialogue func(*term.Terminal) ([]byte, error)) (answer []byte, err error) {
	fd := int(in.Fd())
	if !term.IsTerminal(fd) {
		return nil, fmt.Errorf("keys: ask for a passphrase: %w: %s is none; give a passphrase file instead", ErrNoTerminal, in.Name())
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("keys: ask for a passphrase: turn the echo off: %w", err)
	}
	defer func() {
		if restoreErr := term.Restore(fd, before); restoreErr != nil && err == nil {
			answer, err = nil, fmt.Errorf("keys: ask for a passphrase: turn the echo on again: %w; run reset", restoreErr)
		}
	}()
	answer, err = dialogue(term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, out}, ""))
	if errors.Is(err, io.EOF) {
		err = ErrPromptEnded
	}
	if err != nil {
		return nil, fmt.Errorf("keys: ask for a passphrase: %w", err)
	}
	return answer, nil
}

// ReadPassphraseFile returns the first line of a file without its line end. An
// empty one is refused ([ErrEmptyPassphrase]).
//
// A passphrase in a file is worth as much as the key it opens, so a regular file
// that others may read is refused like a key ([ErrExposed]). A pipe is accepted,
// as in --passphrase-file <(pass show banksman).
func ReadPassphraseFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("keys: read passphrase: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("keys: read passphrase: %w", err)
	}
	if info.Mode().IsRegular() {
		if err := requireUnexposed(path, file, info); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, passphraseLimit_bytes+2))
	if err != nil {
		return nil, fmt.Errorf("keys: read passphrase: %w", err)
	}
	line, err := firstLine(text)
	if err != nil {
		return nil, fmt.Errorf("keys: read passphrase %s: %w", path, err)
	}
	return line, nil
}

func firstLine(text []byte) ([]byte, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch {
	case len(line) == 0:
		return nil, fmt.Errorf("%w: the first line holds nothing; write the passphrase there", ErrEmptyPassphrase)
	case len(line) > passphraseLimit_bytes:
		return nil, fmt.Errorf("the first line is longer than %d bytes; name the right file", passphraseLimit_bytes)
	case !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0:
		return nil, errors.New("the first line is not text, so nobody could type it; name the right file")
	}
	return line, nil
}
