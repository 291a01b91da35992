package host

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/services/internal/localsock"
	"github.com/banksman/banksman/services/internal/site"
)

// serveStatus answers with the board on run/status/<name>.sock, and takes requests
// to drain there.
func serveStatus(l site.Layout, name string, b *board) (stop func(), err error) {
	listener, err := localsock.Listen(filepath.Join(l.StatusDir(), name+".sock"))
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if askedToDrain(w, r, b) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.MarshalWrite(w, b.status())
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	return func() {
		server.Close()
		<-done
	}, nil
}

// ReadStatus asks every process that runs roles of a folder. A process that
// left its socket behind counts as not ready; when nothing runs the list is
// empty and not ready.
func ReadStatus(ctx context.Context, l site.Layout) (Status, error) {
	all := Status{Roles: []RoleStatus{}}
	list, err := os.ReadDir(l.StatusDir())
	if err != nil && !os.IsNotExist(err) {
		return all, fmt.Errorf("look for running roles: %w", err)
	}
	for _, entry := range list {
		name, ok := strings.CutSuffix(entry.Name(), ".sock")
		if !ok {
			continue
		}
		path := filepath.Join(l.StatusDir(), entry.Name())
		one, err := readOne(ctx, path)
		if err != nil {
			reason := fmt.Sprintf("%q does not answer: %v", name, err)
			if localsock.Gone(err) {
				reason = fmt.Sprintf("%q is not running; it ended without taking leave", name)
			}
			one.Roles = []RoleStatus{{Role: name, Since: time.Now().UTC(), Reason: reason}}
		}
		all.Roles = append(all.Roles, one.Roles...)
	}
	all.Ready = len(all.Roles) > 0 && !slices.ContainsFunc(all.Roles, func(r RoleStatus) bool { return !r.Ready })
	return all, nil
}

// call makes one request to a process.
func call(ctx context.Context, path, method, target string) (*http.Response, error) {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return localsock.Dial(ctx, path) },
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://status"+target, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

func readOne(ctx context.Context, path string) (Status, error) {
	resp, err := call(ctx, path, http.MethodGet, "/")
	if err != nil {
		return Status{}, err
	}
	defer resp.Body.Close()
	var s Status
	if err := json.UnmarshalRead(resp.Body, &s); err != nil {
		return Status{}, fmt.Errorf("read the answer: %w", err)
	}
	return s, nil
}
