package events

import (
	"fmt"
	"regexp"
	"strings"
)

// Prefixes of the subject spaces. Only Stored is kept by the audited stream.
const (
	PrefixStored = "bm"  // bm.<family>.<scope>.<id>.<verb>.<actor>, the audited stream
	PrefixLive   = "bml" // live copies and heartbeats, not stored
	PrefixQuery  = "bmq" // questions and answers, not stored
	PrefixText   = "bmb" // bmb.<digest>.<actor>, texts that can be erased
	PrefixOutput = "bmo" // bmo.<pool>.<job>.<attempt>.<n>.<worker>, output chunks
)

// Kind names what happened: "<family>.<verb>", the verb in the past tense.
type Kind string

// Family is the part before the dot: what it happened to.
func (k Kind) Family() string { f, _, _ := strings.Cut(string(k), "."); return f }

// Verb is the part after the dot: what happened.
func (k Kind) Verb() string { _, v, _ := strings.Cut(string(k), "."); return v }

// Subject is where an event is stored: bm.<family>.<scope>.<id>.<verb>.<actor>.
// Scope is a pool, a project or "site"; ID is what the event is about.
type Subject struct {
	Family string
	Scope  string
	ID     string
	Verb   string
	Actor  string
}

// For makes the subject of a kind.
func For(k Kind, scope, id, actor string) Subject {
	return Subject{Family: k.Family(), Scope: scope, ID: id, Verb: k.Verb(), Actor: actor}
}

func (s Subject) String() string {
	return strings.Join([]string{PrefixStored, s.Family, s.Scope, s.ID, s.Verb, s.Actor}, ".")
}

// Kind is the kind that the subject names.
func (s Subject) Kind() Kind { return Kind(s.Family + "." + s.Verb) }

// Filter is the subject filter of everything about the same thing, in any
// scope. Every append names the last sequence it has seen under this filter,
// and every writer uses the same filter: a writer with another one would race.
func (s Subject) Filter() string { return Filter(s.Family, s.ID) }

// Filter is the filter of everything about one thing of a family.
func Filter(family, id string) string {
	return PrefixStored + "." + family + ".*." + id + ".>"
}

// Valid says what is wrong with a subject, or nil.
func (s Subject) Valid() error {
	for _, t := range []struct{ what, token string }{
		{"scope", s.Scope}, {"actor", s.Actor},
	} {
		if err := CheckName(t.what, t.token); err != nil {
			return err
		}
	}
	if !idPattern.MatchString(s.ID) {
		return fmt.Errorf("subject id %q: must match %s", s.ID, idPattern)
	}
	if !wordPattern.MatchString(s.Family) || !wordPattern.MatchString(s.Verb) {
		return fmt.Errorf("subject kind %q: family and verb must match %s", s.Kind(), wordPattern)
	}
	return nil
}

// ParseSubject reads a stored subject.
func ParseSubject(text string) (Subject, error) {
	t := strings.Split(text, ".")
	if len(t) != 6 || t[0] != PrefixStored {
		return Subject{}, fmt.Errorf("subject %q: want bm.<family>.<scope>.<id>.<verb>.<actor>", text)
	}
	s := Subject{Family: t[1], Scope: t[2], ID: t[3], Verb: t[4], Actor: t[5]}
	return s, s.Valid()
}

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
	idPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	wordPattern = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)
	notInName   = regexp.MustCompile(`[^a-z0-9_-]+`)
)

// CheckName refuses a pool, project, source or actor name that cannot be a
// subject token, and suggests one that can.
func CheckName(what, name string) error {
	if namePattern.MatchString(name) {
		return nil
	}
	fix := notInName.ReplaceAllString(strings.ToLower(name), "-")
	fix = strings.TrimLeft(fix, "-_")
	fix = fix[:min(len(fix), 32)]
	if !namePattern.MatchString(fix) {
		return fmt.Errorf("%s name %q: must be 1 to 32 of a-z 0-9 _ - and start with a letter or digit", what, name)
	}
	return fmt.Errorf("%s name %q: must be 1 to 32 of a-z 0-9 _ - and start with a letter or digit; %q would do", what, name, fix)
}
