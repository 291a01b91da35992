package proposer

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
)

// whose finds on whose behalf a token speaks. Tokens lie in folders, one file
// "<agent|person>.<id>" each; they are read at each question, so a token that
// was added or removed counts at once.
// A file that cannot be read keeps nobody out whose own can be.
func whose(folders []string, token string) (events.Proposer, bool, error) {
	if token == "" { // an empty file is nobody's token
		return events.Proposer{}, false, nil
	}
	var failed []error
	for _, folder := range folders {
		from, known, err := whoseIn(folder, token)
		if known {
			return from, true, nil
		}
		failed = append(failed, err)
	}
	return events.Proposer{}, false, errors.Join(failed...)
}

func whoseIn(folder, token string) (events.Proposer, bool, error) {
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return events.Proposer{}, false, nil
	}
	if err != nil {
		return events.Proposer{}, false, fmt.Errorf("read the tokens: %w", err)
	}
	want := sha256.Sum256([]byte(token))
	var failed []error
	for _, entry := range list {
		kind, id, ok := strings.Cut(entry.Name(), ".")
		if !ok || kind != "agent" && kind != "person" || events.CheckName(kind, id) != nil {
			continue
		}
		text, err := keys.ReadSecret(filepath.Join(folder, entry.Name()))
		if err != nil {
			failed = append(failed, fmt.Errorf("read the token of %s %s: %w", kind, id, err))
			continue
		}
		got := sha256.Sum256([]byte(strings.TrimSpace(string(text))))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			return events.Proposer{Kind: kind, ID: id}, true, nil
		}
	}
	return events.Proposer{}, false, errors.Join(failed...)
}
