package imported

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// File is where a site's state folder keeps the history.
func File(state string) string { return filepath.Join(state, "imported", AgentSafe+".json") }

// Save keeps a history in the place of an earlier one.
func Save(state string, h History) error {
	path := File(state)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep the imported history: %w", err)
	}
	text, err := json.Marshal(h, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("keep the imported history: %w", err)
	}
	if err := renameio.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("keep the imported history: %w", err)
	}
	return nil
}

// Load reads the history that is kept; an empty one where none was imported.
func Load(state string) (History, error) {
	h := History{Jobs: []Job{}}
	text, err := os.ReadFile(File(state))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return h, fmt.Errorf("read the imported history %s: %w", File(state), err)
	}
	return h, nil
}

// Find returns the one job whose id begins with a prefix.
func (h History) Find(prefix string) (Job, bool) {
	var found Job
	n := 0
	for _, j := range h.Jobs {
		if strings.HasPrefix(j.ID, prefix) && prefix != "" {
			found = j
			n++
		}
	}
	return found, n == 1
}
