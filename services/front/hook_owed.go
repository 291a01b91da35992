package front

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/view"
)

// A call that was answered as pending is repeated by the agent under another
// id. What is owed to it is noted in a file that is named by the call's content
// and holds the job: the repetition then gets that job, which may have run by
// now, instead of a second one. A file is taken by removing it, so that of two
// equal calls at once only one gets the job. Losing the files costs nothing but
// a new question to a person.

// errNotOwed says that no job is owed to a call.
var errNotOwed = errors.New("no job is owed")

// owedFor is how long an owed job is remembered.
const owedFor = 30 * 24 * time.Hour

func owedFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "banksman", "hook"), nil
}

// owedJob takes the job that is owed to a call.
func (a *app) owedJob(ctx context.Context, c *agentapi.Client, key string) (view.Detail, error) {
	dir, err := owedFolder()
	if err != nil {
		return view.Detail{}, errNotOwed
	}
	path := filepath.Join(dir, key)
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return view.Detail{}, errNotOwed
	}
	j, err := c.Job(ctx, strings.TrimSpace(string(text)), 0, 0)
	var refused *agentapi.Error
	if errors.As(err, &refused) && refused.Code == "unknown_job" {
		os.Remove(path) // of another site, or of another token
		return view.Detail{}, errNotOwed
	}
	if err != nil {
		return view.Detail{}, err
	}
	if os.Remove(path) != nil { // another call was faster
		return view.Detail{}, errNotOwed
	}
	return j, nil
}

// owe notes that a call was answered as pending, and forgets old notes.
func (a *app) owe(key, job string) {
	dir, err := owedFolder()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, key), []byte(job+"\n"), 0o600)
	}
	if err != nil {
		a.say("remember job %s for the repeated call: %v", job, err)
		return
	}
	list, _ := os.ReadDir(dir)
	for _, entry := range list {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > owedFor {
			os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
