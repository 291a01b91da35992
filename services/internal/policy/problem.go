package policy

import (
	"fmt"
	"sort"
	"strings"
)

// ProblemCode names a kind of fault in a policy text. The strings never change.
type ProblemCode string

// The faults that Parse reports, and the one that only Warnings reports.
const (
	// ProblemSyntax means that the text is not TOML, or is too large, too deep or
	// has a line that is too long.
	ProblemSyntax ProblemCode = "syntax"
	// ProblemUnknownKey means that a key is none that the language knows.
	ProblemUnknownKey ProblemCode = "unknown_key"
	// ProblemWrongType means that a value has the wrong TOML type.
	ProblemWrongType ProblemCode = "wrong_type"
	// ProblemBadText means that a string hides something: control or bidi characters.
	ProblemBadText ProblemCode = "bad_text"
	// ProblemBadVersion means that version is missing or not 1.
	ProblemBadVersion ProblemCode = "bad_version"
	// ProblemBadID means that a rule has no id or one outside [a-z0-9_-].
	ProblemBadID ProblemCode = "bad_id"
	// ProblemDuplicateID means that two rules share an id.
	ProblemDuplicateID ProblemCode = "duplicate_id"
	// ProblemEmptyProgram means that a rule names no program.
	ProblemEmptyProgram ProblemCode = "empty_program"
	// ProblemBadProgram means that program is neither a bare name nor a clean absolute path.
	ProblemBadProgram ProblemCode = "bad_program"
	// ProblemBadDecision means that decision is none of allow, ask and deny.
	ProblemBadDecision ProblemCode = "bad_decision"
	// ProblemMissingReason means that a deny rule gives no reason.
	ProblemMissingReason ProblemCode = "missing_reason"
	// ProblemMisplacedKey means that a key has no meaning beside the rule's others.
	ProblemMisplacedKey ProblemCode = "misplaced_key"
	// ProblemBadValue means that a value is outside its range or list.
	ProblemBadValue ProblemCode = "bad_value"
	// ProblemBadRoot means that a root is no clean absolute path.
	ProblemBadRoot ProblemCode = "bad_root"
	// ProblemRootCoversDataDir means that a root contains the data folder or lies in it.
	ProblemRootCoversDataDir ProblemCode = "root_covers_data_dir"
	// ProblemProgramInRoot means that an allow rule names a program inside a root,
	// where whoever proposes could rewrite it.
	ProblemProgramInRoot ProblemCode = "program_in_root"
	// ProblemExampleFailed means that a match or not_match example does not hold.
	ProblemExampleFailed ProblemCode = "example_failed"
	// ProblemBadEnv means that the Env given to Parse is unusable; the text is not at fault.
	ProblemBadEnv ProblemCode = "bad_env"
	// ProblemBroadRule is a warning: an allow rule lets arguments carry code.
	ProblemBroadRule ProblemCode = "broad_rule"
	// ProblemFolderCode is a warning: an allow rule runs code of the working folder.
	ProblemFolderCode ProblemCode = "folder_code"
)

// Problem is one fault in a policy text.
type Problem struct {
	// Code is the kind of fault, to branch on.
	Code ProblemCode
	// Line is where it stands, counted from 1; 0 when it has no place.
	Line int
	// Rule is the id of the rule, or its place such as "#3" when it has none.
	Rule string
	// Key is the key at fault, "" when the rule as a whole is.
	Key string
	// Message says what is wrong.
	Message string
	// Next says what to do about it.
	Next string
}

// Error returns the fault in one line, without the name of the text.
func (p Problem) Error() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Rule != "" {
		fmt.Fprintf(&b, "rule %s: ", p.Rule)
	}
	b.WriteString(p.Message)
	if p.Next != "" {
		b.WriteString("; ")
		b.WriteString(p.Next)
	}
	fmt.Fprintf(&b, " (%s)", p.Code)
	return b.String()
}

// ParseError reports everything that is wrong with a policy text at once.
type ParseError struct {
	// Name is the name that Parse was given, usually a file name.
	Name string
	// Problems are the faults, by line.
	Problems []Problem
}

// Error returns one line for each problem.
func (e *ParseError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "parse policy %s: %d problem(s)", e.Name, len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(p.Error())
	}
	return b.String()
}

// Unwrap returns the problems, so that errors.As finds the first one.
func (e *ParseError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// Has reports whether a problem of that kind is among them.
func (e *ParseError) Has(code ProblemCode) bool {
	for _, p := range e.Problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

// findings collects the problems of one text while it is read.
type findings struct{ list []Problem }

func (f *findings) add(p Problem) { f.list = append(f.list, p) }

// err returns nil when nothing was found.
func (f *findings) err(name string) error {
	if len(f.list) == 0 {
		return nil
	}
	sort.SliceStable(f.list, func(i, j int) bool { return f.list[i].Line < f.list[j].Line })
	return &ParseError{Name: name, Problems: f.list}
}
