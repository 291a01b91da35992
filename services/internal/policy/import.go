package policy

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Imported is a policy file of another program as a policy text.
type Imported struct {
	// Text is the policy.
	Text []byte
	// Lost says what the text could not express, or expresses in another way.
	Lost []string
}

// agentSafe is version 1 of the policy file of agent-safe.
type agentSafe struct {
	Version  *int `json:"version"`
	Commands []struct {
		Program string   `json:"program"`
		Prefix  []string `json:"args_prefix"`
	} `json:"allowed_commands"`
	Roots     []string  `json:"allowed_working_roots"`
	Denied    []string  `json:"denied_arguments"`
	Env       *[]string `json:"environment_allowlist"`
	Timeout_s *int      `json:"max_timeout_seconds"`
	Output    *int      `json:"max_output_chars"`
}

// The limits and defaults of that file.
const (
	agentSafeTimeout_s    = 300
	agentSafeMaxTimeout_s = 86400
	agentSafeOutput       = 8000
	agentSafeMinOutput    = 256
	agentSafeMaxOutput    = 1_000_000
)

// ErrNotAgentSafe means that a text is no version 1 policy file of agent-safe.
var ErrNotAgentSafe = errors.New("no policy file of agent-safe, version 1")

// ImportAgentSafe turns a version 1 policy file of agent-safe into a policy text with
// the same meaning: what that file lists a person may approve, in its roots, without
// its denied arguments; everything else is denied. Folder is the absolute folder of
// the file, which its relative roots count from.
func ImportAgentSafe(text []byte, folder string) (Imported, error) {
	var f agentSafe
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	if len(text) > maxText_bytes {
		return Imported{}, fmt.Errorf("%w: it has %d bytes, more than %d", ErrNotAgentSafe, len(text), maxText_bytes)
	}
	if err := json.Unmarshal(text, &f, json.RejectUnknownMembers(true)); err != nil {
		return Imported{}, fmt.Errorf("%w: %w", ErrNotAgentSafe, err)
	}
	if err := f.check(); err != nil {
		return Imported{}, fmt.Errorf("%w: %w", ErrNotAgentSafe, err)
	}
	w := importer{file: f}
	w.write(folder)
	return Imported{Text: []byte(w.out.String()), Lost: w.lost}, nil
}

// check applies the bounds that agent-safe itself applies.
func (f *agentSafe) check() error {
	if f.Version == nil || *f.Version != 1 {
		return errors.New("version is not 1")
	}
	if f.Timeout_s == nil {
		f.Timeout_s = ptr(agentSafeTimeout_s)
	}
	if f.Output == nil {
		f.Output = ptr(agentSafeOutput)
	}
	if *f.Timeout_s < 1 || *f.Timeout_s > agentSafeMaxTimeout_s {
		return fmt.Errorf("max_timeout_seconds is %d, not 1 to %d", *f.Timeout_s, agentSafeMaxTimeout_s)
	}
	if *f.Output < agentSafeMinOutput || *f.Output > agentSafeMaxOutput {
		return fmt.Errorf("max_output_chars is %d, not %d to %d", *f.Output, agentSafeMinOutput, agentSafeMaxOutput)
	}
	lists := map[string][]string{"allowed_working_roots": f.Roots, "denied_arguments": f.Denied}
	if f.Env != nil {
		lists["environment_allowlist"] = *f.Env
	}
	for name, list := range lists {
		for _, s := range list {
			if s == "" || strings.ContainsRune(s, 0) {
				return fmt.Errorf("%s holds an empty text or a NUL", name)
			}
		}
	}
	for i, c := range f.Commands {
		if c.Program == "" || strings.ContainsRune(c.Program+strings.Join(c.Prefix, ""), 0) {
			return fmt.Errorf("allowed_commands %d names no program or holds a NUL", i+1)
		}
	}
	return nil
}

func ptr(n int) *int { return &n }

// importer writes a policy text.
type importer struct {
	file agentSafe
	out  strings.Builder
	lost []string
}

func (w *importer) lose(format string, args ...any) {
	w.lost = append(w.lost, fmt.Sprintf(format, args...))
}

func (w *importer) write(folder string) {
	w.out.WriteString("# Made from a policy file of agent-safe. A person approves what it lists, as there;\n# everything else is denied.\nversion = 1\n")
	roots := w.roots(folder)
	if len(roots) == 0 {
		w.lose("allowed_working_roots is empty, which denies every command; the policy has no rules")
		return
	}
	for i, c := range w.file.Commands {
		program := c.Program
		switch {
		case path.IsAbs(program):
			program = path.Clean(program)
		case strings.ContainsAny(program, "/ \t\n*?"), program == ".", program == "..":
			w.lose("allowed_commands %d: program %q counts from the folder where agent-safe is started; write its absolute path", i+1, program)
			continue
		}
		w.rule(fmt.Sprintf("agent-safe-%d", i+1), program, c.Prefix, roots)
	}
	w.notes()
}

func (w *importer) rule(id, program string, prefix, roots []string) {
	fmt.Fprintf(&w.out, "\n[[rule]]\nid = %s\nprogram = %s\n", tomlText(id), tomlText(program))
	if len(prefix) > 0 {
		args := make([]string, len(prefix))
		for i, arg := range prefix {
			args[i] = strings.NewReplacer(`\`, `\\`, "*", `\*`).Replace(arg)
		}
		fmt.Fprintf(&w.out, "args = %s\n", tomlTexts(args))
	}
	fmt.Fprintf(&w.out, "roots = %s\n", tomlTexts(roots))
	if len(w.file.Denied) > 0 {
		fmt.Fprintf(&w.out, "deny_text = %s\n", tomlTexts(w.file.Denied))
	}
	fmt.Fprintf(&w.out, "max_timeout_s = %d\nmax_output_bytes = %d\ndecision = \"ask\"\n", *w.file.Timeout_s, *w.file.Output)
}

// roots makes the roots absolute, as agent-safe does when it loads the file.
func (w *importer) roots(folder string) []string {
	var roots []string
	for _, root := range w.file.Roots {
		if !path.IsAbs(root) {
			root = path.Join(folder, root)
		}
		roots = append(roots, path.Clean(root))
	}
	return roots
}

// notes says what has no counterpart.
func (w *importer) notes() {
	w.lose("max_output_chars counts characters and keeps the tail; max_output_bytes counts bytes, and of each stream the head is kept as well")
	if w.file.Env != nil {
		w.lose("environment_allowlist: which variables of a worker its jobs see is set in the worker's configuration, not in the policy")
	}
	w.lose("symbolic links in roots are not followed here; name real paths")
	w.lose("a bare program never stands for one inside a root, where jobs can write")
}

// tomlText writes a string for TOML.
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func tomlTexts(list []string) string {
	written := make([]string, len(list))
	for i, s := range list {
		written[i] = tomlText(s)
	}
	return "[" + strings.Join(written, ", ") + "]"
}
