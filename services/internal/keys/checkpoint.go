package keys

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// CheckpointKey signs the auditor's checkpoints as signed notes (C2SP
// signed-note). Its name is part of the key and appears in every checkpoint.
type CheckpointKey struct {
	skey     hidden[string]
	verifier string
}

// GenerateCheckpointKey makes a new checkpoint key. The name is by custom the
// origin of the log; it holds no space and no plus sign.
func GenerateCheckpointKey(name string) (*CheckpointKey, error) {
	skey, vkey, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, fmt.Errorf("keys: generate checkpoint key %q: %w", name, err)
	}
	if _, err := note.NewVerifier(vkey); err != nil {
		return nil, fmt.Errorf("keys: generate checkpoint key %q: the name must hold characters, and neither space nor plus sign", name)
	}
	return &CheckpointKey{skey: hide(skey), verifier: vkey}, nil
}

// Verifier returns the public half, in the form that note.NewVerifier takes.
func (k *CheckpointKey) Verifier() string { return k.verifier }

// Format shows the public half, whatever the verb.
func (k CheckpointKey) Format(f fmt.State, _ rune) { io.WriteString(f, "checkpoint key "+k.verifier) }

// LogValue shows the public half.
func (k CheckpointKey) LogValue() slog.Value { return slog.StringValue("checkpoint key " + k.verifier) }

// WriteCheckpointKey writes a checkpoint key to a new file.
func WriteCheckpointKey(path string, k *CheckpointKey) error {
	if k == nil || k.skey == nil {
		return fmt.Errorf("keys: write %s: there is no key to write", path)
	}
	return WriteSecret(path, []byte(k.skey()+"\n"))
}

// LoadCheckpointKey reads a checkpoint key and returns what signs with it and
// its public half, in the form that note.NewVerifier takes.
func LoadCheckpointKey(path string) (note.Signer, string, error) {
	text, err := ReadSecret(path)
	if err != nil {
		return nil, "", err
	}
	signer, vkey, err := parseCheckpointKey(string(text))
	if err != nil {
		return nil, "", damaged(path, err.Error())
	}
	return signer, vkey, nil
}

func parseCheckpointKey(text string) (note.Signer, string, error) {
	skey := strings.TrimSpace(text)
	signer, err := note.NewSigner(skey)
	if err != nil {
		return nil, "", errors.New("it is not a note signing key")
	}
	// PRIVATE+KEY+name+hash+data; only data, the last part, may hold a plus sign.
	parts := strings.SplitN(skey, "+", 5)
	data, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(data) != 1+ed25519.SeedSize {
		return nil, "", errors.New("it is not an Ed25519 note signing key")
	}
	public := ed25519.NewKeyFromSeed(data[1:]).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return nil, "", errors.New("its public half cannot be derived")
	}
	return signer, vkey, nil
}
