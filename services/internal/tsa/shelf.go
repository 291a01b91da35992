package tsa

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
)

// Shelf is the folder of the stamped heads of one log. Of the head of N entries it holds
// N.checkpoint, which is what was stamped, N.tsq, the request, and N.tsr, the answer.
type Shelf string

// Held is what a shelf holds of one head.
type Held struct {
	Size       int64
	Checkpoint []byte
	Request    []byte
	Answer     []byte // nil while none has come
}

func (s Shelf) path(size int64, kind string) string {
	return filepath.Join(string(s), strconv.FormatInt(size, 10)+"."+kind)
}

// List returns what the shelf holds, by size. A shelf that is not there holds nothing.
func (s Shelf) List() ([]Held, error) {
	entries, err := os.ReadDir(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list stamps: %w", err)
	}
	var list []Held
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".checkpoint")
		size, err := strconv.ParseInt(name, 10, 64)
		if !ok || err != nil || strconv.FormatInt(size, 10) != name {
			continue
		}
		h, err := s.Get(size)
		if err != nil {
			return nil, err
		}
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b Held) int { return int(min(max(a.Size-b.Size, -1), 1)) })
	return list, nil
}

// Get returns what the shelf holds of a head, nil for nothing.
func (s Shelf) Get(size int64) (*Held, error) {
	h := Held{Size: size}
	for kind, into := range map[string]*[]byte{"checkpoint": &h.Checkpoint, "tsq": &h.Request, "tsr": &h.Answer} {
		b, err := os.ReadFile(s.path(size, kind))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the stamp of %d entries: %w", size, err)
		}
		*into = b
	}
	if h.Checkpoint == nil {
		return nil, nil
	}
	return &h, nil
}

// Prepare returns the request to stamp a head; once it was made it stays the same.
func (s Shelf) Prepare(size int64, checkpoint []byte) (*Held, error) {
	h, err := s.Get(size)
	if err != nil || h != nil && h.Request != nil {
		return h, err
	}
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of stamps: %w", err)
	}
	query, err := Request(checkpoint)
	if err != nil {
		return nil, err
	}
	if err := s.write(size, "tsq", query); err != nil {
		return nil, err
	}
	if err := s.write(size, "checkpoint", checkpoint); err != nil {
		return nil, err
	}
	return &Held{Size: size, Checkpoint: checkpoint, Request: query}, nil
}

// Put checks an answer and stores it beside its request. It finds out which head the
// answer is about.
func (s Shelf) Put(answer []byte) (*Held, *Stamp, error) {
	st, err := Parse(answer)
	if err != nil {
		return nil, nil, err
	}
	list, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	for _, h := range list {
		if st.Stamps(h.Checkpoint) != nil {
			continue
		}
		if err := st.Answers(h.Request); err != nil {
			return nil, nil, err
		}
		if h.Answer != nil && !bytes.Equal(h.Answer, answer) {
			return nil, nil, fmt.Errorf("the head of %d entries has a stamp already", h.Size)
		}
		if h.Answer == nil {
			if err := s.write(h.Size, "tsr", answer); err != nil {
				return nil, nil, err
			}
		}
		h.Answer = answer
		return &h, st, nil
	}
	return nil, nil, errors.New("the stamp is about no head that a request was made for here")
}

// write makes a file that appears whole and durable, or not at all.
func (s Shelf) write(size int64, kind string, content []byte) error {
	if err := renameio.WriteFile(s.path(size, kind), content, 0o600); err != nil {
		return fmt.Errorf("store a stamp: %w", err)
	}
	return nil
}
