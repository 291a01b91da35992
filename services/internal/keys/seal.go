package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"
)

const (
	// workFactor is log2 of the scrypt cost: 256 MiB of memory and about a second.
	workFactor = 18
	// workFactorLimit bounds what a file may make the reader spend: 1 GiB.
	workFactorLimit = 20
)

// SealOption changes how a file is encrypted.
type SealOption func(*sealing)

type sealing struct{ workFactor int }

// WorkFactor sets the base-2 logarithm of the scrypt cost, from 1 to 20; the
// default is 18. Lower values are for tests: they protect little.
func WorkFactor(logN int) SealOption {
	return func(s *sealing) { s.workFactor = logN }
}

// seal encrypts text with a passphrase.
func seal(text, passphrase []byte, options []SealOption) ([]byte, error) {
	chosen := sealing{workFactor: workFactor}
	for _, option := range options {
		option(&chosen)
	}
	if chosen.workFactor < 1 || chosen.workFactor > workFactorLimit {
		return nil, fmt.Errorf("the work factor %d is not between 1 and %d", chosen.workFactor, workFactorLimit)
	}
	if len(passphrase) == 0 {
		return nil, ErrEmptyPassphrase
	}
	recipient, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return nil, err
	}
	recipient.SetWorkFactor(chosen.workFactor)
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	writer, err := age.Encrypt(armored, recipient)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := errors.Join(writer.Close(), armored.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// sealed reports whether a file is an age file, armored or not.
func sealed(text []byte) bool {
	return isArmored(text) || bytes.HasPrefix(text, []byte("age-encryption.org/"))
}

func isArmored(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte(armor.Header))
}

// openSealed asks for the passphrase of the file path and decrypts its content.
func openSealed(path string, text []byte, ask func(prompt string) ([]byte, error)) ([]byte, error) {
	if ask == nil {
		return nil, fmt.Errorf("keys: read %s: %w; run it on a terminal or give a passphrase file", path, ErrNeedsPassphrase)
	}
	passphrase, err := ask("Passphrase for " + path + ": ")
	if errors.Is(err, ErrNoTerminal) {
		return nil, fmt.Errorf("keys: read %s: %w: %w", path, ErrNeedsPassphrase, err)
	}
	if err != nil {
		return nil, fmt.Errorf("keys: read %s: ask for its passphrase: %w", path, err)
	}
	return unseal(path, text, passphrase)
}

func unseal(path string, text, passphrase []byte) ([]byte, error) {
	if len(passphrase) == 0 { // no file is written with an empty one
		return nil, fmt.Errorf("keys: read %s: %w: %w", path, ErrWrongPassphrase, ErrEmptyPassphrase)
	}
	identity, err := age.NewScryptIdentity(string(passphrase))
	if err != nil {
		return nil, fmt.Errorf("keys: read %s: %w", path, err)
	}
	identity.SetMaxWorkFactor(workFactorLimit)
	var source io.Reader = bytes.NewReader(text)
	if isArmored(text) {
		source = armor.NewReader(source)
	}
	plain, err := age.Decrypt(source, identity)
	var mismatch *age.NoIdentityMatchError
	switch {
	case errors.As(err, &mismatch) && len(mismatch.StanzaTypes) == 1 && mismatch.StanzaTypes[0] == "scrypt":
		return nil, fmt.Errorf("keys: read %s: %w; try again", path, ErrWrongPassphrase)
	case errors.As(err, &mismatch):
		return nil, damaged(path, "it is encrypted to a key instead of a passphrase; decrypt it with age first")
	case err != nil:
		return nil, damaged(path, err.Error())
	}
	content, err := io.ReadAll(io.LimitReader(plain, secretLimit_bytes))
	if err != nil {
		return nil, damaged(path, err.Error())
	}
	return content, nil
}
