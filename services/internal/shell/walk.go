package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// reader collects what one walk over a text finds.
type reader struct {
	script  *Script
	depth   int
	opened  []bool // for each node on the way down, whether it counts as depth
	env     []string
	folders []string
	fed     map[*syntax.CallExpr]bool
	// groups says that the text holds ((...)), which is arithmetic for bash and two
	// groups of commands for smaller shells.
	groups bool
}

// walk visits every node below stmt once.
func (r *reader) walk(stmt *syntax.Stmt) {
	if r.fed == nil {
		r.fed = map[*syntax.CallExpr]bool{}
	}
	syntax.Walk(stmt, func(n syntax.Node) bool {
		if n == nil {
			last := len(r.opened) - 1
			if r.opened[last] {
				r.depth--
			}
			r.opened = r.opened[:last]
			return true
		}
		deeper := nests(n)
		r.opened = append(r.opened, deeper)
		if deeper {
			if r.depth++; r.depth > MaxDepth {
				r.script.doubt(TooDeep, n.Pos().Line())
			}
		}
		r.visit(n)
		return true
	})
}

func nests(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause,
		*syntax.ForClause, *syntax.CaseClause, *syntax.FuncDecl, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.ParenArithm:
		return true
	}
	return false
}

func (r *reader) visit(n syntax.Node) {
	line := n.Pos().Line()
	switch n := n.(type) {
	case *syntax.Stmt:
		r.redirections(n)
	case *syntax.BinaryCmd:
		r.pipe(n)
	case *syntax.CallExpr:
		r.call(n)
	case *syntax.DeclClause:
		r.declare(n)
	case *syntax.ForClause:
		if loop, ok := n.Loop.(*syntax.WordIter); ok {
			r.set(loop.Name, line)
		} else {
			r.script.doubt(Arithmetic, line)
		}
	case *syntax.FuncDecl, *syntax.CoprocClause, *syntax.TestDecl:
		r.script.doubt(Function, line)
	case *syntax.ArithmCmd:
		r.script.doubt(Arithmetic, line)
		r.groups = true
	case *syntax.ArithmExp, *syntax.LetClause:
		r.script.doubt(Arithmetic, line)
	case *syntax.TestClause:
		r.script.doubt(Arithmetic, line)
	case *syntax.ParamExp:
		if !simple(n) {
			r.script.doubt(Arithmetic, line)
		}
	}
}

// simple reports whether an expansion only inserts a value, or a word when there is
// none: it cannot evaluate anything.
func simple(p *syntax.ParamExp) bool {
	if p.Excl || p.Width || p.Param == nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 {
		return false
	}
	if p.Exp == nil {
		return true
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
		syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return true
	}
	return false
}

// redirections notes what a statement reads and writes.
func (r *reader) redirections(s *syntax.Stmt) {
	for _, d := range s.Redirs {
		line := d.Pos().Line()
		target, plain := "", true
		if d.Word != nil {
			target, plain = value(d.Word)
		}
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			body := d.Hdoc
			if d.Op == syntax.WordHdoc {
				body = d.Word
			}
			if body != nil {
				text, _ := value(body)
				r.script.Inputs = append(r.script.Inputs, text)
			}
			r.feed(s)
		case syntax.DplIn, syntax.DplOut:
			if !plain || strings.Trim(strings.TrimSuffix(target, "-"), "0123456789") != "" {
				r.script.doubt(Writes, line)
			}
		case syntax.RdrIn:
			r.feed(s)
			r.reads(target, plain, line)
		default:
			if !plain || !harmlessSink(target) {
				r.script.doubt(Writes, line)
			}
			r.reads(target, plain, line)
		}
		if d.N != nil && strings.HasPrefix(d.N.Value, "{") {
			r.script.doubt(Builtin, line)
		}
	}
}

// reads notes the paths that bash itself turns into connections.
func (r *reader) reads(target string, plain bool, line uint) {
	if !plain {
		r.script.doubt(Words, line)
	}
	if strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/") {
		r.script.doubt(Network, line)
	}
}

func harmlessSink(target string) bool {
	return target == "/dev/null" || target == "/dev/stdout" || target == "/dev/stderr"
}

// feed marks the command of a statement as having an input of its own.
func (r *reader) feed(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		r.fed[call] = true
	}
}

// pipe marks the reader of a pipe, and keeps the text that a plain echo writes there.
func (r *reader) pipe(b *syntax.BinaryCmd) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
		return
	}
	r.feed(b.Y)
	from := b.X
	if inner, ok := from.Cmd.(*syntax.BinaryCmd); ok {
		from = inner.Y
	}
	call, ok := from.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 {
		return
	}
	name, _ := value(call.Args[0])
	if name != "echo" && name != "printf" {
		return
	}
	var words []string
	for _, w := range call.Args[1:] {
		text, _ := value(w)
		words = append(words, text)
	}
	text := strings.Join(words, " ")
	r.script.Inputs = append(r.script.Inputs, text, strings.ReplaceAll(text, `\n`, "\n"))
}

// call notes one simple command.
func (r *reader) call(c *syntax.CallExpr) {
	line := c.Pos().Line()
	if len(c.Args) == 0 {
		// Without a command the variable stays, and if it was exported it reaches
		// every later command.
		for _, a := range c.Assigns {
			r.assign(a, line)
		}
		return
	}
	kept := r.env
	r.env = r.env[:len(r.env):len(r.env)]
	for _, a := range c.Assigns {
		r.assign(a, line)
	}
	command := Command{Env: r.env, Folders: r.folders[:len(r.folders):len(r.folders)], Fed: r.fed[c]}
	r.env = kept
	for i, w := range c.Args {
		text, plain := value(w)
		command.Argv = append(command.Argv, text)
		if plain {
			continue
		}
		if command.Open == nil {
			command.Open = make([]bool, len(c.Args))
		}
		command.Open[i] = true
	}
	if command.open(0) || command.Argv[0] == "" {
		r.script.doubt(Name, line)
	}
	r.builtin(command, line)
	r.script.Commands = append(r.script.Commands, command)
}

func (r *reader) assign(a *syntax.Assign, line uint) {
	if a.Index != nil || a.Array != nil {
		r.script.doubt(Arithmetic, line)
	}
	r.set(a.Name, line)
	if n := len(r.env); a.Value != nil && !a.Append && n > 0 && a.Name != nil && r.env[n-1] == a.Name.Value {
		if text, plain := value(a.Value); plain {
			r.env[n-1] += "=" + text
		}
	}
}

// maxNames bounds how many variables are told apart; more are in doubt.
const maxNames = 256

// set notes that the text sets a variable.
func (r *reader) set(name *syntax.Lit, line uint) {
	if name == nil {
		r.script.doubt(Builtin, line)
		return
	}
	if Dangerous(name.Value) || len(r.env) >= maxNames {
		r.script.doubt(Variable, line)
		return
	}
	r.env = append(r.env, name.Value)
}

// declare notes export, declare and their like.
func (r *reader) declare(d *syntax.DeclClause) {
	line := d.Pos().Line()
	if d.Variant == nil || d.Variant.Value != "export" && d.Variant.Value != "local" && d.Variant.Value != "readonly" {
		r.script.doubt(Builtin, line)
	}
	for _, a := range d.Args {
		if a.Naked && a.Name == nil {
			r.script.doubt(Builtin, line)
			continue
		}
		r.assign(a, line)
	}
}
