package imported

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// entry is one line of the trail.
type entry struct {
	Seq       int64          `json:"seq"`
	Timestamp string         `json:"timestamp"`
	Event     string         `json:"event"`
	PrevHash  *string        `json:"prev_hash"`
	Data      jsontext.Value `json:"data"`
	Hash      string         `json:"hash"`
}

// Chain is how far an audit trail holds together.
type Chain struct {
	Entries int    `json:"entries"`             // that fit
	Head    string `json:"head,omitempty"`      // hash of the last of them
	SHA256  string `json:"sha256"`              // of the whole file
	Fault   string `json:"fault,omitempty"`     // why the next line does not fit
	Line    int    `json:"fault_line,omitzero"` // its number, from 1
}

// readChain reads the entries of a trail as far as its chain holds.
func readChain(text []byte) ([]entry, Chain) {
	sum := sha256.Sum256(text)
	c := Chain{SHA256: hex.EncodeToString(sum[:])}
	var list []entry
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue // that program passes over them, too
		}
		e, err := readEntry(line, len(list), c.Head)
		if err != nil {
			c.Fault, c.Line = err.Error(), number
			break
		}
		list, c.Head = append(list, e), e.Hash
	}
	c.Entries = len(list)
	return list, c
}

// readEntry reads one line that follows so many others, the last with hash head.
func readEntry(line []byte, before int, head string) (entry, error) {
	var e entry
	if err := json.Unmarshal(line, &e, json.RejectUnknownMembers(true)); err != nil {
		return e, fmt.Errorf("it is no entry of a trail: %w", err)
	}
	prev := ""
	if e.PrevHash != nil {
		prev = *e.PrevHash
	}
	switch {
	case e.Seq != int64(before)+1:
		return e, fmt.Errorf("its number is %d and should be %d", e.Seq, before+1)
	case prev != head:
		return e, fmt.Errorf("it follows another entry than the one before it")
	}
	for _, ascii := range []bool{false, true} {
		var out bytes.Buffer
		if err := canonical(&out, line, ascii, "hash"); err != nil {
			return e, err
		}
		if sum := sha256.Sum256(out.Bytes()); hex.EncodeToString(sum[:]) == e.Hash {
			return e, nil
		}
	}
	return e, errors.New("its content has another hash than it says")
}

// canonical writes a value as that program hashes it: without blanks, members in the
// order of their names, numbers as they stand, texts as Python writes them. The
// member left out belongs to the outermost object.
func canonical(out *bytes.Buffer, value jsontext.Value, ascii bool, leftOut string) error {
	switch value.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if err := json.Unmarshal(value, &members); err != nil {
			return err
		}
		delete(members, leftOut)
		names := make([]string, 0, len(members))
		for name := range members {
			names = append(names, name)
		}
		slices.Sort(names)
		out.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				out.WriteByte(',')
			}
			quoteAs(out, name, ascii)
			out.WriteByte(':')
			if err := canonical(out, members[name], ascii, ""); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	case '[':
		var elements []jsontext.Value
		if err := json.Unmarshal(value, &elements); err != nil {
			return err
		}
		out.WriteByte('[')
		for i, e := range elements {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := canonical(out, e, ascii, ""); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return err
		}
		quoteAs(out, s, ascii)
	default:
		out.Write(bytes.TrimSpace(value))
	}
	return nil
}

// quoteAs writes a text as Python's json does, with or without raw letters beyond
// ASCII.
func quoteAs(out *bytes.Buffer, s string, ascii bool) {
	short := strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r < 0x20 && !strings.ContainsRune("\n\r\t\b\f", r):
			fmt.Fprintf(out, `\u%04x`, r)
		case ascii && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case ascii && r > 0x7e:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			out.WriteString(short.Replace(string(r)))
		}
	}
	out.WriteByte('"')
}
