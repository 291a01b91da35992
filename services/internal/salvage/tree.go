package salvage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// snapshot writes the work tree as a tree object. Missed counts paths that
// git could not take; the others are in the tree.
func (t *tree) snapshot(ctx context.Context, index string) (id string, missed int, err error) {
	copied, err := t.copyIndex(index)
	if err != nil {
		return "", 0, &Failure{CodeFiles, t.top, err}
	}
	if copied {
		if id, missed, err = t.add(ctx); err == nil || ctx.Err() != nil {
			return id, missed, err
		}
		// The user's index may be damaged; begin from what is checked out.
		if err := os.Remove(index); err != nil {
			return "", 0, &Failure{CodeFiles, t.top, err}
		}
	}
	if t.head != "" {
		if err := t.g.stream(ctx, nil, io.Discard, "read-tree", t.head); err != nil {
			return "", 0, err
		}
	}
	return t.add(ctx)
}

// add takes everything that may be taken into the index and writes the tree.
func (t *tree) add(ctx context.Context) (id string, missed int, err error) {
	err = t.g.stream(ctx, nil, io.Discard, "add", "--all", "--ignore-errors", "--", ".")
	if err != nil {
		exit, ok := refused(err)
		if !ok || exit.Status != 1 {
			return "", 0, err
		}
		if missed = strings.Count(exit.Stderr, "error: "); missed == 0 {
			return "", 0, err
		}
	}
	id, err = t.g.line(ctx, "write-tree")
	return id, missed, err
}

// emptyTree is the id of the tree without entries in the repository's own
// hash.
func (t *tree) emptyTree(ctx context.Context) (string, error) {
	var out head
	err := t.g.stream(ctx, bytes.NewReader(nil), &out, "hash-object", "-t", "tree", "-w", "--stdin")
	return strings.TrimSpace(out.String()), err
}

// count fills in how much differs between two trees.
func (t *tree) count(ctx context.Context, from, to string, s *Saved) error {
	var diff counter
	if err := t.g.stream(ctx, nil, &diff, "diff-tree", "-r", "-z", "--raw", "--no-renames", from, to); err != nil {
		return err
	}
	s.Files, s.Nested, s.Bytes = diff.files, diff.nested, 0
	if len(diff.blobs) == 0 {
		return nil
	}
	var sizes bytes.Buffer
	if err := t.g.stream(ctx, strings.NewReader(strings.Join(diff.blobs, "\n")+"\n"), &sizes, "cat-file", "--batch-check=%(objectsize)"); err != nil {
		return err
	}
	for line := range strings.Lines(sizes.String()) {
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return fmt.Errorf("read the size of a salvaged file: %w", err)
		}
		s.Bytes += n
	}
	return nil
}

// counter reads diff-tree's raw form as it comes:
// ":<mode> <mode> <id> <id> <letter>\0<path>\0".
type counter struct {
	files, nested int
	blobs         []string
	rest          []byte
	path          bool // a path comes next
}

const (
	modeNested = "160000"
	modeNone   = "000000"
)

func (c *counter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		field, rest, ok := bytes.Cut(c.rest, []byte{0})
		if !ok {
			return len(p), nil
		}
		c.take(string(field))
		c.rest = rest
	}
}

func (c *counter) take(field string) {
	if c.path {
		c.path = false
		return
	}
	f := strings.Fields(strings.TrimPrefix(field, ":"))
	if len(f) != 5 {
		return
	}
	c.path = true
	c.files++
	switch f[1] {
	case modeNone:
	case modeNested:
		c.nested++
	default:
		c.blobs = append(c.blobs, f[3])
	}
}
