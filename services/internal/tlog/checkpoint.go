package tlog

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is a signed head: a C2SP tlog-checkpoint without extension lines, and what
// it says. Whoever reads one from a file must open Note with the log's key before
// believing Size and Root.
type Checkpoint struct {
	Note []byte
	Size int64
	Root [32]byte
}

// headText is the body of a checkpoint and the content of the lock.
func headText(origin string, size int64, root Hash) string {
	return origin + "\n" + strconv.FormatInt(size, 10) + "\n" + base64.StdEncoding.EncodeToString(root[:]) + "\n"
}

// LockOf is what the lock holds when the checkpoint is the newest head.
func LockOf(checkpoint []byte) ([]byte, error) {
	origin, cp, err := ParseCheckpoint(checkpoint)
	if err != nil {
		return nil, err
	}
	return []byte(headText(origin, cp.Size, cp.Root)), nil
}

// ParseHead reads the three lines of a head: origin, size and root. It accepts only
// the canonical form.
func ParseHead(text []byte) (origin string, size int64, root Hash, err error) {
	lines := strings.Split(string(text), "\n")
	if len(lines) != 4 || lines[3] != "" || !isToken(lines[0]) {
		return "", 0, root, fmt.Errorf("%w: a head is three lines: origin, size, root", ErrMalformed)
	}
	n, ok := parseDecimal(lines[1])
	if !ok || n > math.MaxInt64 {
		return "", 0, root, fmt.Errorf("%w: head: size %q", ErrMalformed, lines[1])
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(raw) != len(root) {
		return "", 0, root, fmt.Errorf("%w: head: root %q is not 32 bytes of base64", ErrMalformed, lines[2])
	}
	return lines[0], int64(n), Hash(raw), nil
}

// ParseCheckpoint reads a signed head without checking its signatures, and says which
// origin it claims.
func ParseCheckpoint(b []byte) (origin string, cp Checkpoint, err error) {
	// Opening with no known key never succeeds; the error carries the parsed note.
	_, err = note.Open(b, note.VerifierList())
	unverified, ok := err.(*note.UnverifiedNoteError)
	if !ok {
		return "", Checkpoint{}, fmt.Errorf("%w: checkpoint: %w", ErrMalformed, err)
	}
	n := unverified.Note
	if err := strictSignatures(n.UnverifiedSigs); err != nil {
		return "", Checkpoint{}, err
	}
	cp.Note = b
	origin, cp.Size, cp.Root, err = ParseHead([]byte(n.Text))
	return origin, cp, err
}

// strictSignatures refuses base64 with loose bits at its end, which package note lets
// pass and which would make two byte strings of one signature.
func strictSignatures(sigs []note.Signature) error {
	for _, s := range sigs {
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
			return fmt.Errorf("%w: checkpoint: signature of %q: %w", ErrMalformed, s.Name, err)
		}
	}
	return nil
}

// OpenCheckpoint reads a signed head and requires that at least one of the keys signed
// it. A signature by one of the keys that does not hold is an error even if another one
// does.
func OpenCheckpoint(b []byte, verifiers note.Verifiers) (origin string, cp Checkpoint, err error) {
	if origin, cp, err = ParseCheckpoint(b); err != nil {
		return "", Checkpoint{}, err
	}
	if _, err := note.Open(b, verifiers); err != nil {
		return "", Checkpoint{}, fmt.Errorf("checkpoint of size %d: %w", cp.Size, err)
	}
	return origin, cp, nil
}

func signHead(text string, signers ...note.Signer) ([]byte, error) {
	b, err := note.Sign(&note.Note{Text: text}, signers...)
	if err != nil {
		return nil, fmt.Errorf("sign the head: %w", err)
	}
	return b, nil
}
