package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/banksman/banksman/services/internal/proc"
)

const (
	// maxPromptBytes bounds what is read of a prompt file.
	maxPromptBytes = 8 << 20
	// maxArgumentBytes is what Linux takes as one argument, its NUL included.
	maxArgumentBytes = 128 << 10
)

// call is one round's agent, ready to be executed.
type call struct {
	argv        []string
	found, real string // the program
	prompt      []byte
	stdin       io.Reader // nil for none
}

// prepare reads the prompt and finds the program. Its errors are the
// project's, not the agent's: nothing was begun.
func prepare(cfg Project, search string) (call, error) {
	var c call
	var err error
	if c.prompt, err = readPrompt(cfg); err != nil {
		return c, err
	}
	c.argv = append(c.argv, cfg.Agent...)
	if cfg.PromptBy == byStdin {
		c.stdin = bytes.NewReader(c.prompt)
	} else if err := fill(c.argv, c.prompt); err != nil {
		return c, err
	}
	if c.found, c.real, err = proc.Lookup(c.argv[0], cfg.WorkDir, search); err != nil {
		return c, fmt.Errorf("find the agent: %w", err)
	}
	return c, nil
}

func readPrompt(cfg Project) ([]byte, error) {
	path := cfg.PromptFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.WorkDir, path)
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the prompt: %w", errors.Join(err, notRegular(path, err)))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the prompt: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPromptBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the prompt: %w", err)
	case len(text) > maxPromptBytes:
		return nil, fmt.Errorf("read the prompt: %s is larger than %d bytes", path, maxPromptBytes)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("read the prompt: %s is empty", path)
	}
	return text, nil
}

func notRegular(path string, err error) error {
	if err != nil {
		return nil
	}
	return fmt.Errorf("%s is no regular file", path)
}

// fill puts the prompt into the arguments.
func fill(argv []string, prompt []byte) error {
	if bytes.IndexByte(prompt, 0) >= 0 {
		return fmt.Errorf("the prompt holds a NUL byte, which no argument can carry; use prompt_by = \"stdin\"")
	}
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, placeholder, string(prompt))
		if len(argv[i])+1 > maxArgumentBytes {
			return fmt.Errorf("the prompt makes argument %d %d bytes long, an argument carries at most %d; use prompt_by = \"stdin\"", i, len(argv[i]), maxArgumentBytes-1)
		}
	}
	return nil
}
