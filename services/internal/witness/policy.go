package witness

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// maxNames bounds logs, witnesses and groups of a policy together.
const maxNames = 256

// Policy says whose cosignatures a head needs (C2SP tlog-policy). The zero Policy
// needs none.
type Policy struct {
	Logs      []string // verifier keys
	Witnesses []Witness

	members map[string][]string // of groups
	need    map[string]int
	quorum  string
}

// Witness is one line of a policy.
type Witness struct {
	Name string // in the policy
	Key  Verifier
	URL  string // submission prefix, empty if nobody may ask
}

// ParsePolicy reads a policy file. The error names the line.
func ParsePolicy(text []byte) (Policy, error) {
	p := Policy{members: map[string][]string{}, need: map[string]int{}}
	used := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if err := p.line(f, used); err != nil {
			return Policy{}, fmt.Errorf("witness policy, line %d: %w", i+1, err)
		}
		if len(p.Logs)+len(p.Witnesses)+len(p.members) > maxNames {
			return Policy{}, fmt.Errorf("witness policy, line %d: more than %d names", i+1, maxNames)
		}
	}
	if p.quorum == "" {
		return Policy{}, errors.New("witness policy: there is no quorum line")
	}
	return p, nil
}

func (p *Policy) line(f []string, used map[string]bool) error {
	switch {
	case f[0] == "log" && (len(f) == 2 || len(f) == 3):
		if _, err := logVerifier(f[1]); err != nil {
			return fmt.Errorf("log key %q: %w", f[1], err)
		}
		if slices.Contains(p.Logs, f[1]) {
			return errors.New("the log is named twice")
		}
		p.Logs = append(p.Logs, f[1])
	case f[0] == "witness" && (len(f) == 3 || len(f) == 4):
		return p.witness(f)
	case f[0] == "group" && len(f) >= 4:
		return p.group(f[1], f[2], f[3:], used)
	case f[0] == "quorum" && len(f) == 2:
		if p.quorum != "" {
			return errors.New("a second quorum line")
		}
		if f[1] != "none" && !p.known(f[1]) {
			return fmt.Errorf("quorum %q is not defined above", f[1])
		}
		p.quorum = f[1]
	default:
		return fmt.Errorf("%q: want log, witness, group or quorum with their fields", strings.Join(f, " "))
	}
	return nil
}

func (p *Policy) witness(f []string) error {
	if f[1] == "none" || p.known(f[1]) {
		return fmt.Errorf("the name %q is taken", f[1])
	}
	key, err := ParseVerifier(f[2])
	if err != nil {
		return err
	}
	for _, w := range p.Witnesses {
		if w.Key.key.Equal(key.key) {
			return fmt.Errorf("%q has the key of %q", f[1], w.Name)
		}
	}
	w := Witness{Name: f[1], Key: key}
	if len(f) == 4 {
		w.URL = f[3]
	}
	p.Witnesses = append(p.Witnesses, w)
	return nil
}

func (p *Policy) group(name, k string, members []string, used map[string]bool) error {
	if name == "none" || p.known(name) {
		return fmt.Errorf("the name %q is taken", name)
	}
	for _, m := range members {
		if !p.known(m) {
			return fmt.Errorf("member %q is not defined above", m)
		}
		if used[m] {
			return fmt.Errorf("member %q belongs to a group already", m)
		}
		used[m] = true
	}
	need, err := strconv.Atoi(k)
	switch {
	case k == "any":
		need = 1
	case k == "all":
		need = len(members)
	case err != nil || need < 1 || need > len(members) || strconv.Itoa(need) != k:
		return fmt.Errorf("threshold %q: want any, all or 1 to %d", k, len(members))
	}
	p.members[name], p.need[name] = members, need
	return nil
}

func (p *Policy) known(name string) bool {
	return p.need[name] > 0 || slices.ContainsFunc(p.Witnesses, func(w Witness) bool { return w.Name == name })
}

// satisfied says whether these witnesses are enough.
func (p *Policy) satisfied(name string, by map[string]bool) bool {
	if name == "none" || name == "" || by[name] {
		return true
	}
	n := 0
	for _, m := range p.members[name] {
		if p.satisfied(m, by) {
			n++
		}
	}
	return p.need[name] > 0 && n >= p.need[name]
}

// ErrNoQuorum says that too few witnesses have cosigned.
var ErrNoQuorum = errors.New("the head is not cosigned by a quorum of the witnesses")

// Judge checks the cosignatures of a signed head. As of the time it returns, a quorum
// had seen no larger head of the log; that is zero if the policy needs no witness. A
// cosignature that is wrong, or of later than now, does not count.
func (p *Policy) Judge(checkpoint []byte, now time.Time) (asOf time.Time, err error) {
	if p.satisfied(p.quorum, nil) {
		return time.Time{}, nil
	}
	type vote struct {
		name string
		at   time.Time
	}
	var votes []vote
	for _, w := range p.Witnesses {
		n, err := note.Open(checkpoint, note.VerifierList(w.Key))
		if err != nil {
			continue
		}
		for _, s := range n.Sigs {
			raw, err := base64.StdEncoding.DecodeString(s.Base64)
			if err != nil || len(raw) < 4 {
				continue
			}
			if at, err := timeOf(raw[4:]); err == nil && !at.After(now.Add(time.Minute)) {
				votes = append(votes, vote{w.Name, at})
			}
		}
	}
	slices.SortFunc(votes, func(a, b vote) int { return b.at.Compare(a.at) })
	by := map[string]bool{}
	for _, v := range votes {
		by[v.name] = true
		if p.satisfied(p.quorum, by) {
			return v.at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %d of %d", ErrNoQuorum, len(by), len(p.Witnesses))
}
