package evidence

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/tlog"
)

// proofTag is the first line of a C2SP tlog-proof.
const proofTag = "c2sp.org/tlog-proof@v1"

// maxPath is how many hashes a path in a tree of 2^63 leaves can have.
const maxPath = 63

// Proof says that a leaf is in the tree of a signed head (C2SP tlog-proof).
type Proof struct {
	Index      int64
	Path       modtlog.RecordProof
	Checkpoint []byte // the signed note, as it is
}

// Text is the proof in its text form.
func (p *Proof) Text() []byte {
	b := fmt.Appendf(nil, "%s\nindex %d\n", proofTag, p.Index)
	return append(append(appendPath(b, p.Path), '\n'), p.Checkpoint...)
}

// appendPath appends hashes, a line each.
func appendPath(b []byte, path modtlog.RecordProof) []byte {
	for _, h := range path {
		b = base64.StdEncoding.AppendEncode(b, h[:])
		b = append(b, '\n')
	}
	return b
}

// parsePath is the strict inverse of appendPath, line feeds aside.
func parsePath(lines []string) (path modtlog.RecordProof, err error) {
	if len(lines) > maxPath {
		return nil, fmt.Errorf("proof malformed: %d hashes, at most %d make a path", len(lines), maxPath)
	}
	for _, line := range lines {
		raw, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(raw) != modtlog.HashSize {
			return nil, fmt.Errorf("proof malformed: hash %q", line)
		}
		path = append(path, modtlog.Hash(raw))
	}
	return path, nil
}

// ParseProof reads a proof. It is strict: it accepts what [Proof.Text] writes. Extra
// data, which nothing authenticates, is refused.
func ParseProof(b []byte) (Proof, error) {
	head, checkpoint, ok := bytes.Cut(b, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !ok || len(lines) < 2 || lines[0] != proofTag {
		return Proof{}, errors.New("proof malformed: want " + proofTag + ", an index, hashes, an empty line and a checkpoint")
	}
	number, ok := strings.CutPrefix(lines[1], "index ")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || n > math.MaxInt64 || strconv.FormatUint(n, 10) != number {
		return Proof{}, fmt.Errorf("proof malformed: index line %q", lines[1])
	}
	path, err := parsePath(lines[2:])
	return Proof{Index: int64(n), Path: path, Checkpoint: checkpoint}, err
}

// Check says whether an entry is leaf Index of the tree that the head names. The
// head's signature is another matter.
func (p *Proof) Check(entry []byte, head tlog.Checkpoint) error {
	if !bytes.Equal(p.Checkpoint, head.Note) {
		return errors.New("the proof is under another checkpoint than the bundle's")
	}
	if p.Index >= head.Size {
		return fmt.Errorf("leaf %d is not under a head of %d leaves", p.Index, head.Size)
	}
	if err := modtlog.CheckRecord(p.Path, head.Size, modtlog.Hash(head.Root), p.Index, modtlog.RecordHash(entry)); err != nil {
		return fmt.Errorf("leaf %d is not in the tree of the checkpoint", p.Index)
	}
	return nil
}
