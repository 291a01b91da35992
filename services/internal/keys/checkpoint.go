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
	signer   hidden[note.Signer]
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
	return parseCheckpointKey(skey)
}

// Verifier returns the public half, in the form that note.NewVerifier takes.
func (k *CheckpointKey) Verifier() string { return k.verifier }

// Format shows the public half, whatever the verb.
func (k CheckpointKey) Format(f fmt.State, _ rune) { io.WriteString(f, "checkpoint key "+k.verifier) }

// LogValue shows the public half.
func (k CheckpointKey) LogValue() slog.Value { return slog.StringValue("checkpoint key " + k.verifier) }

// Signer returns what signs notes with the key.
func (k *CheckpointKey) Signer() note.Signer { return k.signer() }

// WriteCheckpointKey writes a checkpoint key to a new file.
func WriteCheckpointKey(path string, k *CheckpointKey) error {
	text, err := checkpointText([]*CheckpointKey{k})
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	return WriteSecret(path, text)
}

// ReplaceCheckpointKeys puts other keys into a file of checkpoint keys, the one that
// stays first. Whoever reads the file sees the old ones or the new ones; the bytes of
// the old file are overwritten, see [MoveSecret].
func ReplaceCheckpointKeys(path string, all []*CheckpointKey) error {
	text, err := checkpointText(all)
	if err != nil {
		return fmt.Errorf("keys: write %s: %w", path, err)
	}
	next := Next(path)
	if err := DestroySecret(next); err != nil { // of a replacement that was interrupted
		return err
	}
	if err := WriteSecret(next, text); err != nil {
		return err
	}
	return MoveSecret(next, path)
}

func checkpointText(all []*CheckpointKey) ([]byte, error) {
	var text []byte
	for _, k := range all {
		if k == nil || k.skey == nil {
			return nil, errors.New("there is no key to write")
		}
		text = append(text, k.skey()+"\n"...)
	}
	if len(text) == 0 {
		return nil, errors.New("there is no key to write")
	}
	return text, nil
}

// LoadCheckpointKeys reads the auditor's checkpoint keys: one, or while it rotates the
// new one and then the one before.
func LoadCheckpointKeys(path string) ([]*CheckpointKey, error) {
	text, err := ReadSecret(path)
	if err != nil {
		return nil, err
	}
	var all []*CheckpointKey
	for line := range strings.Lines(strings.TrimSpace(string(text)) + "\n") {
		k, err := parseCheckpointKey(strings.TrimSpace(line))
		if err != nil {
			return nil, damaged(path, err.Error())
		}
		all = append(all, k)
	}
	return all, nil
}

func parseCheckpointKey(skey string) (*CheckpointKey, error) {
	signer, err := note.NewSigner(skey)
	if err != nil {
		return nil, errors.New("it is not a note signing key")
	}
	// PRIVATE+KEY+name+hash+data; only data, the last part, may hold a plus sign.
	parts := strings.SplitN(skey, "+", 5)
	data, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(data) != 1+ed25519.SeedSize {
		return nil, errors.New("it is not an Ed25519 note signing key")
	}
	public := ed25519.NewKeyFromSeed(data[1:]).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return nil, errors.New("its public half cannot be derived")
	}
	return &CheckpointKey{skey: hide(skey), signer: hide(signer), verifier: vkey}, nil
}
