package auditor

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/tlog"
)

// heldSigners takes every signature of a checkpoint as it comes and holds it: whether
// the key may sign is known only after the log, which holds the trust files, was read.
type heldSigners struct {
	text string
	held []heldSignature
	size int64
	root tlog.Hash
}

type heldSignature struct {
	name string
	hash uint32
	sig  []byte
}

// Verifier implements note.Verifiers.
func (h *heldSigners) Verifier(name string, hash uint32) (note.Verifier, error) {
	return &heldSigner{all: h, name: name, hash: hash}, nil
}

type heldSigner struct {
	all  *heldSigners
	name string
	hash uint32
}

func (s *heldSigner) Name() string    { return s.name }
func (s *heldSigner) KeyHash() uint32 { return s.hash }

// Verify holds the signature; signedBy decides.
func (s *heldSigner) Verify(msg, sig []byte) bool {
	s.all.text = string(msg)
	s.all.held = append(s.all.held, heldSignature{s.name, s.hash, slices.Clone(sig)})
	if _, size, root, err := tlog.ParseHead(msg); err == nil {
		s.all.size, s.all.root = size, root
	}
	return true
}

// signedBy requires a signature by one of the keys, and that no signature in the name
// of one of them is wrong. Lines of others, such as witnesses, do not count.
func (h *heldSigners) signedBy(vkeys []string) error {
	signed := false
	for _, text := range vkeys {
		key, err := note.NewVerifier(text)
		if err != nil {
			continue
		}
		for _, s := range h.held {
			if s.name != key.Name() || s.hash != key.KeyHash() {
				continue
			}
			if !key.Verify([]byte(h.text), s.sig) {
				return fmt.Errorf("the checkpoint's signature by %s does not verify", key.Name())
			}
			signed = true
		}
	}
	if !signed {
		return errors.New("the checkpoint is not signed by any key of the trust file in force at the head")
	}
	return nil
}
