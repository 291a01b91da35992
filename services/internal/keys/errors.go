package keys

import "errors"

// Errors to branch on. Every error of this package that wraps one of them adds
// what was attempted, on which file, and what to do.
var (
	// ErrExists reports that a secret would have overwritten a file.
	ErrExists = errors.New("it exists already and secrets are never overwritten")

	// ErrExposed reports that a file may be read by others than its owner.
	ErrExposed = errors.New("others may read it")

	// ErrUnsafeFolder reports that others could change what lies in a folder, or
	// exchange the folder itself.
	ErrUnsafeFolder = errors.New("the folder is not safe for secrets")

	// ErrDamaged reports that a file is not what its place says it is.
	ErrDamaged = errors.New("the content is not valid")

	// ErrWrongPassphrase reports that a passphrase does not open a file.
	ErrWrongPassphrase = errors.New("the passphrase is wrong")

	// ErrNeedsPassphrase reports that a file is encrypted and that nobody could
	// be asked for its passphrase.
	ErrNeedsPassphrase = errors.New("it is encrypted and there is nobody to ask for the passphrase")

	// ErrEmptyPassphrase reports an empty passphrase, which would protect nothing.
	ErrEmptyPassphrase = errors.New("the passphrase is empty")

	// ErrPassphrasesDiffer reports that no two entries of a new passphrase agreed.
	ErrPassphrasesDiffer = errors.New("no acceptable passphrase was typed twice alike")

	// ErrNoTerminal reports that there is no terminal to ask on.
	ErrNoTerminal = errors.New("there is no terminal")

	// ErrPromptEnded reports that the person ended the prompt (Ctrl-C or Ctrl-D).
	ErrPromptEnded = errors.New("the prompt was ended without an answer")

	// ErrOddNonce reports that a server asked for a signature over something that
	// is not a log-in nonce.
	ErrOddNonce = errors.New("the server's challenge is not a log-in nonce")

	// ErrBadPublicKey reports a public key that is malformed or for which anybody
	// can make signatures.
	ErrBadPublicKey = errors.New("the public key is not acceptable")
)
