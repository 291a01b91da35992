package auditor

import (
	"context"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/trust"
)

// keyring holds the auditor's checkpoint keys: one, or two while it rotates. Which of
// them sign is the trust file's decision, so that a key comes and goes with an event
// and no restart.
type keyring struct {
	path    string
	loaded  []*keys.CheckpointKey
	version int // of the trust file that the keys were last chosen by
}

func newKeyring(path string) (*keyring, error) {
	loaded, err := keys.LoadCheckpointKeys(path)
	return &keyring{path: path, loaded: loaded}, err
}

// all signs with every key that there is, for a log that is not read yet and whose
// trust file is therefore not known. Signatures that no trust file asks for are ignored.
func (k *keyring) all() (signer note.Signer, also []note.Signer) {
	for _, key := range k.loaded[1:] {
		also = append(also, key.Signer())
	}
	return k.loaded[0].Signer(), also
}

// choose returns those who sign under a trust file; changed is false while they are
// the same as before. The key file is read anew when the trust file is a new one or
// lists a key that is not here yet. None means that the file lists none of ours.
func (k *keyring) choose(file *events.TrustPublished) (signers []note.Signer, changed bool) {
	here := func(vkey string) bool {
		return slices.ContainsFunc(k.loaded, func(key *keys.CheckpointKey) bool { return key.Verifier() == vkey })
	}
	missing := slices.ContainsFunc(file.CheckpointKeys, func(vkey string) bool { return !here(vkey) })
	if file.Version == k.version && !missing {
		return nil, false
	}
	if loaded, err := keys.LoadCheckpointKeys(k.path); err == nil { // else those in memory go on
		k.loaded = loaded
	}
	k.version = file.Version
	for _, key := range k.loaded {
		if slices.Contains(file.CheckpointKeys, key.Verifier()) {
			signers = append(signers, key.Signer())
		}
	}
	return signers, true
}

// SealedBy says whether the newest head that the stream tells of carries a signature of
// a checkpoint key.
func SealedBy(ctx context.Context, stream Stream, book *trust.Book, vkey string) (bool, error) {
	p, found, err := lastSealed(ctx, stream, book, "*")
	if err != nil || !found {
		return false, err
	}
	key, err := note.NewVerifier(vkey)
	if err != nil {
		return false, err
	}
	_, err = note.Open([]byte(p.Note), note.VerifierList(key))
	return err == nil, nil
}
