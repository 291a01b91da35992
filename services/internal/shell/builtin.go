package shell

import "strings"

// Dangerous reports whether setting a variable of that name changes which program a
// name stands for, or makes a program run something else.
func Dangerous(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "CDPATH", "PS1", "PS4", "PROMPT_COMMAND", "SHELL", "HOME",
		"EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "GCONV_PATH", "LOCPATH", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB",
		"RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "TAR_OPTIONS", "LESSOPEN", "LESSCLOSE", "MAKEFLAGS", "GOFLAGS", "RIPGREP_CONFIG_PATH":
		return true
	}
	for _, head := range []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_", "PYTHON", "npm_config_", "NPM_CONFIG_"} {
		if strings.HasPrefix(name, head) {
			return true
		}
	}
	return false
}

// Harmless reports whether the command is a builtin that starts nothing and changes
// nothing outside its shell. Whatever such a builtin could do beyond that is a doubt
// of the script.
func (c Command) Harmless() bool {
	if c.open(0) {
		return false
	}
	switch c.Argv[0] {
	case "echo", "printf", "true", "false", ":", "exit", "return", "break", "continue", "pwd", "wait", "shift", "times",
		"test", "[", "cd", "set", "umask", "unset", "type":
		return true
	case "command":
		return len(c.Argv) > 1 && (c.Argv[1] == "-v" || c.Argv[1] == "-V") && !c.open(1)
	}
	return false
}

// builtin notes what a builtin does to the shell itself.
func (r *reader) builtin(c Command, line uint) {
	args := c.Argv[1:]
	switch c.Argv[0] {
	case "cd":
		r.changeFolder(c, line)
	case "set":
		for i, arg := range args {
			if arg == "--" {
				break
			}
			if c.open(i+1) || strings.Trim(arg, "-+eufxvoC") != "" && arg != "pipefail" && arg != "errexit" && arg != "nounset" && arg != "xtrace" {
				r.script.doubt(Builtin, line)
			}
		}
	case "test", "[":
		// -v and -R evaluate the subscript of the variable that they name.
		for i, arg := range args {
			if c.open(i+1) || arg == "-v" || arg == "-R" {
				r.script.doubt(Arithmetic, line)
			}
		}
	case "printf":
		if len(args) > 0 && (c.open(1) || strings.HasPrefix(args[0], "-v")) {
			r.script.doubt(Arithmetic, line)
		}
	case "unset", "umask", "type", "wait", "shift", "exit", "return", "break", "continue":
		for i, arg := range args {
			if c.open(i+1) || strings.ContainsAny(arg, "[$`") || c.Argv[0] == "unset" && (Dangerous(arg) || strings.HasPrefix(arg, "-")) {
				r.script.doubt(Builtin, line)
			}
		}
	case "source", ".":
		r.script.doubt(Sourced, line)
	case "alias", "enable", "hash", "shopt", "bind", "complete", "compgen", "mapfile", "readarray", "read", "getopts", "fc", "pushd", "popd", "builtin", "declare", "export", "let", "typeset":
		if c.Argv[0] == "alias" {
			r.script.doubt(Function, line)
			return
		}
		r.script.doubt(Builtin, line)
	}
}

// maxFolders bounds the folders that are followed; more are in doubt.
const maxFolders = 16

func (r *reader) changeFolder(c Command, line uint) {
	operand, given := "", false
	for i, arg := range c.Argv[1:] {
		switch {
		case c.open(i + 1):
			r.script.doubt(Words, line)
		case arg == "--", arg == "-L", arg == "-P", arg == "-e":
			continue
		}
		if given {
			r.script.doubt(Builtin, line)
		}
		operand, given = arg, true
	}
	if !given || operand == "-" || operand == "" || len(r.folders) >= maxFolders {
		r.script.doubt(Words, line)
		if !given {
			operand = "~"
		}
	}
	if len(r.folders) < maxFolders {
		r.folders = append(r.folders, operand)
	}
}
