package policy

import (
	"path"
	"strings"

	"github.com/banksman/banksman/services/internal/shell"
)

// view is one command that an argument vector plainly shows: the vector itself, what
// a wrapper at its head would start, or a command in a text for a shell.
type view struct {
	argv []string
	// folders are the working folders that relative operands may count from.
	folders []string
	// wrapped marks a command behind a wrapper; where its program lies is not known.
	wrapped bool
	// loose marks words too many to try one by one; naming a denied program among them
	// is enough to be denied.
	loose bool
	// guess marks words that may be a command or not. Only rules that deny read them.
	guess bool
	// judged marks a command that starts beside the proposed one, so that permitting
	// rules have to list it as well.
	judged bool
	// text marks a command that stands in a text for a shell.
	text bool
	// env are the variables set for this command besides the proposal's own, as NAME=VALUE
	// where the value is known.
	env []string
	// moved marks a command that may run in another folder than the proposal names.
	moved bool
	// fed marks a command that a text gives an input.
	fed bool
	// depth counts the wrappers and texts around it.
	depth int
}

// plan is everything that an argument vector plainly starts, and why that may not be all.
type plan struct {
	views  []view
	doubts []shell.Kind
	inputs []string // plain texts that the last text feeds to commands
	bytes  int      // length of the texts read so far
}

const (
	// maxWrapping is how many wrappers and texts may stand in one another.
	maxWrapping = 8
	// maxSuffixes bounds the words that are tried one by one, since the work grows with
	// their square and whoever proposes chooses how many there are.
	maxSuffixes = 64
	// maxFolders bounds the work for one wrapper; it is far above what a person writes.
	maxFolders = 32
	// maxTexts_bytes bounds the texts of one request, those in other texts included.
	maxTexts_bytes = 512 << 10
)

// What makes a plan doubtful besides what package shell finds.
const (
	doubtOptions  shell.Kind = "a wrapper with options that are not known"
	doubtNested   shell.Kind = "commands nested too deeply"
	doubtFed      shell.Kind = "arguments that come from the input"
	doubtCode     shell.Kind = "an interpreter that reads code from its input"
	doubtFolder   shell.Kind = "a command in a folder that is only known when it runs"
	doubtUnpinned shell.Kind = "a script whose content an approval cannot pin"
)

func (p *plan) doubt(kinds ...shell.Kind) {
	for _, k := range kinds {
		known := false
		for _, have := range p.doubts {
			known = known || have == k
		}
		if !known {
			p.doubts = append(p.doubts, k)
		}
	}
}

// unfold returns every command that argv plainly shows, argv itself first.
func unfold(argv, folders []string) plan {
	p := plan{views: []view{{argv: argv, folders: folders}}}
	for i := 0; i < len(p.views); i++ {
		if v := p.views[i]; !v.loose && len(v.argv) > 0 {
			p.open(i, v)
		}
	}
	return p
}

// open adds what the view at index i starts.
func (p *plan) open(i int, v view) {
	name := baseName(v.argv[0])
	if carried, ok := shell.TextOf(v.argv); ok {
		p.openText(v, carried)
		return
	}
	if name == "find" {
		for _, argv := range findCommands(v.argv) {
			p.start(v, argv, reachable(v.argv[1:], v.folders))
		}
		return
	}
	if w, known := wrapperOf(name); known {
		p.openWrapper(i, v, w)
		return
	}
	if v.text && v.fed && len(v.argv) == 1 && contains(interpreters(), strings.TrimRight(name, "0123456789.")) {
		p.doubt(doubtCode)
	}
}

func (p *plan) openWrapper(i int, v view, w wrapper) {
	if len(v.argv) < 2 || v.guess && !v.text {
		return
	}
	start, sure := w.command(v.argv)
	reached := reachable(v.argv[1:start], v.folders)
	if !sure || v.depth >= maxWrapping {
		p.doubt(doubtOptions)
		if v.guess {
			p.views = append(p.views, view{argv: v.argv[1:], wrapped: true, loose: true, guess: true})
			return
		}
		p.views = append(p.views, suffixes(v, reached)...)
		return
	}
	if start >= len(v.argv) {
		return
	}
	if w.feeds {
		p.doubt(doubtFed)
	}
	for _, arg := range v.argv[1:start] {
		if name, _, ok := strings.Cut(arg, "="); ok && assignment(arg) {
			v.env = append(v.env[:len(v.env):len(v.env)], arg)
			if shell.Dangerous(name) {
				p.doubt(shell.Variable)
			}
		}
	}
	if v.text && w.clear {
		p.views[i].judged = false
	}
	p.start(v, v.argv[start:], reached)
}

// start adds a command that v starts.
func (p *plan) start(v view, argv, folders []string) {
	p.views = append(p.views, view{
		argv: argv, folders: folders, wrapped: true, judged: !v.guess, text: v.text, env: v.env,
		moved: v.moved || len(folders) > len(v.folders), fed: v.fed, guess: v.guess, depth: v.depth + 1,
	})
}

// openText adds the commands of a text that v hands to a shell.
func (p *plan) openText(v view, c shell.Carried) {
	p.doubt(c.Doubts...)
	texts := []string{c.Text}
	if c.Input {
		if !v.text {
			return // A job's input is closed, so there is nothing to read.
		}
		p.doubt(shell.Sourced)
		texts, p.inputs = p.inputs, nil
	}
	for _, text := range texts {
		p.bytes += len(text)
		if v.depth >= maxWrapping || p.bytes > maxTexts_bytes {
			p.doubt(doubtNested)
			p.views = append(p.views, view{argv: strings.Fields(text), wrapped: true, loose: true, guess: true})
			continue
		}
		p.read(v, text)
	}
}

func (p *plan) read(v view, text string) {
	s := shell.Read(text)
	for _, d := range s.Doubts {
		p.doubt(d.Kind)
	}
	p.inputs = append(p.inputs, s.Inputs...)
	folders, moves := v.folders, 0
	for _, c := range s.Commands {
		if len(c.Folders) > moves {
			folders, moves = visited(v.folders, c.Folders), len(c.Folders)
		}
		env := v.env
		if len(c.Env) > 0 {
			env = append(env[:len(env):len(env)], c.Env...)
		}
		harmless := c.Harmless()
		if !harmless && !c.Plain() {
			p.doubt(shell.Words)
		}
		p.views = append(p.views, view{
			argv: c.Argv, folders: folders, wrapped: true, text: true, judged: !harmless && c.Argv[0] != "" && !v.guess,
			env: env, moved: v.moved || len(c.Folders) > 0, fed: c.Fed, guess: v.guess, depth: v.depth + 1,
		})
	}
	for _, words := range s.Rest {
		p.views = append(p.views, suffixes(view{argv: append([]string{""}, words...)}, v.folders)...)
	}
}

// suffixes returns every later word of v as if a command began there. A word with
// blanks may itself hold a command (env -S), so its fields are tried as well.
func suffixes(v view, folders []string) []view {
	argv := v.argv
	if len(argv) > maxSuffixes {
		return []view{{argv: argv[1:], wrapped: true, loose: true, guess: true}}
	}
	folders = reachable(argv[1:], folders)
	var all []view
	add := func(argv []string) {
		all = append(all, view{argv: argv, folders: folders, wrapped: true, guess: true, depth: v.depth + 1})
	}
	for i := 1; i < len(argv); i++ {
		add(argv[i:])
		fields := splitWord(argv[i])
		if len(fields) > maxSuffixes {
			all = append(all, view{argv: fields, wrapped: true, loose: true, guess: true})
			continue
		}
		if len(fields) == 1 && fields[0] == argv[i] {
			continue
		}
		whole := append(fields, argv[i+1:]...)
		for j := range fields {
			add(whole[j:])
		}
	}
	return all
}

// splitWord returns what env -S would make of a word, as far as no quotes are involved.
func splitWord(word string) []string {
	return strings.Fields(strings.TrimPrefix(strings.TrimPrefix(word, "--split-string="), "-S"))
}

// visited adds to folders those that the operands of cd may lead to, one after the other.
func visited(folders, operands []string) []string {
	all := append([]string(nil), folders...)
	from := folders
	for _, operand := range operands {
		var next []string
		for _, folder := range from {
			switch {
			case len(all) >= maxFolders:
				return all
			case strings.HasPrefix(operand, "~"), strings.HasPrefix(operand, "$HOME"):
				_, rest, _ := strings.Cut(operand, "/")
				next = append(next, path.Join("/root", rest))
			case path.IsAbs(operand):
				next = append(next, path.Clean(operand))
			case folder != "":
				next = append(next, path.Join("/", folder, operand))
			}
		}
		all = append(all, next...)
		from = append(from[:len(from):len(from)], next...)
	}
	return all
}

// reachable adds to folders those outside the working folder that the words of a
// wrapper may change to (env -C, sudo --chdir, chroot).
func reachable(words, folders []string) []string {
	all := append([]string(nil), folders...)
	for _, word := range words {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		} else if len(word) > 2 && word[0] == '-' && word[1] != '-' {
			word = word[2:]
		}
		switch {
		case len(all) >= maxFolders:
			return all
		case path.IsAbs(word):
			all = append(all, path.Clean(word))
		case strings.HasPrefix(word, ".."):
			for _, folder := range folders {
				all = append(all, path.Join("/", folder, word))
			}
		}
	}
	return all
}
