package shell

// The bounds of a text that is parsed.
const (
	// MaxText_bytes is the length above which a text is not parsed.
	MaxText_bytes = 64 << 10
	// MaxDepth is how many substitutions, groups and compound commands may stand in
	// one another.
	MaxDepth = 32
	// maxOpeners bounds the depth before the parser, which recurses, sees the text.
	maxOpeners = 4096
)

// Script is what a text would start.
type Script struct {
	// Commands are the simple commands in the order of the text.
	Commands []Command
	// Doubts say why the text may do more than start its Commands; at most one of
	// each kind.
	Doubts []Doubt
	// Inputs are the plain texts that the script feeds to commands: here-documents,
	// here-strings and what a plain echo writes into a pipe.
	Inputs []string
	// Rest holds the words of a text that could not be parsed as a whole, one list
	// for each stretch between the signs that end a command.
	Rest [][]string
}

// Command is one simple command.
type Command struct {
	// Argv are the words with quotes and escapes resolved. It is never empty.
	Argv []string
	// Open marks the words whose value is not in the text; their element of Argv is
	// what can be told of them, such as $HOME. It is nil when all are plain.
	Open []bool
	// Env are the variables that the text sets before this command: NAME=VALUE, or the
	// name alone when the value is not in the text.
	Env []string
	// Folders are the operands of the plain cd commands before this one.
	Folders []string
	// Fed reports whether the text gives the command an input of its own.
	Fed bool
}

// Plain reports whether every word of the command stands in the text.
func (c Command) Plain() bool { return c.Open == nil }

// open reports whether word i is not in the text.
func (c Command) open(i int) bool { return c.Open != nil && c.Open[i] }

// Kind says what makes a text doubtful. The strings never change.
type Kind string

// The kinds of doubt.
const (
	// Hidden: the text holds control or bidi characters, or is not UTF-8.
	Hidden Kind = "hidden characters"
	// TooLong: the text has more than MaxText_bytes.
	TooLong Kind = "a text too long to be read"
	// TooDeep: too much stands in one another, see MaxDepth.
	TooDeep Kind = "a text nested too deeply to be read"
	// Grammar: the text does not follow the grammar.
	Grammar Kind = "a text that does not follow the grammar of a shell"
	// Name: the name of a command is known only when it runs.
	Name Kind = "a command whose name is only known when it runs"
	// Words: an argument is known only when it runs.
	Words Kind = "arguments that are only known when they are expanded"
	// Writes: a redirection writes to a file.
	Writes Kind = "a redirection that writes a file"
	// Network: a redirection talks to the network.
	Network Kind = "a redirection to the network"
	// Variable: a variable is set that changes what names mean.
	Variable Kind = "a variable that changes what commands mean"
	// Function: a function or an alias is defined.
	Function Kind = "a function or an alias"
	// Arithmetic: arithmetic, which can run commands out of variables.
	Arithmetic Kind = "arithmetic or an expansion that can run commands"
	// Builtin: a builtin is used in a way that can do more than it says.
	Builtin Kind = "a builtin that can do more than it says"
	// Sourced: commands come from a file or from the input.
	Sourced Kind = "commands that come from elsewhere"
	// Startup: the shell reads start-up files first.
	Startup Kind = "a shell that reads start-up files first"
	// Foreign: the shell has another grammar.
	Foreign Kind = "a shell of another grammar"
	// Remote: the commands run on another machine.
	Remote Kind = "commands for another machine"
)

// Doubt is one reason why a text may do more than start its commands.
type Doubt struct {
	// Kind says which.
	Kind Kind
	// Line is where, counted from 1; 0 for the text as a whole.
	Line int
}

func (s *Script) doubt(k Kind, line uint) {
	for _, d := range s.Doubts {
		if d.Kind == k {
			return
		}
	}
	s.Doubts = append(s.Doubts, Doubt{Kind: k, Line: int(line)})
}

// Doubtful reports whether a doubt of that kind is among them.
func (s Script) Doubtful(k Kind) bool {
	for _, d := range s.Doubts {
		if d.Kind == k {
			return true
		}
	}
	return false
}
