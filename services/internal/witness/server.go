package witness

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/tlog"
)

// maxRequest_bytes bounds a request: 63 hashes and a checkpoint.
const maxRequest_bytes = 64 << 10

// Server is a small witness. It is an http.Handler for add-checkpoint.
type Server struct {
	signer *Signer
	dir    string
	now    func() time.Time
	logs   map[string][]note.Verifier // by origin

	mu sync.Mutex // held, with the folder's lock, from reading the last head to having stored the next
}

// NewServer makes a witness of the logs whose verifier keys are given; a key's name is
// the log's origin. The folder is made if it is missing.
func NewServer(dir string, signer *Signer, logs []string, now func() time.Time) (*Server, error) {
	s := &Server{signer: signer, dir: dir, now: now, logs: map[string][]note.Verifier{}}
	for _, text := range logs {
		v, err := logVerifier(text)
		if err != nil {
			return nil, fmt.Errorf("witness: log key %q: %w", text, err)
		}
		s.logs[v.Name()] = append(s.logs[v.Name()], v)
	}
	if len(s.logs) == 0 {
		return nil, errors.New("witness: name at least one log's verifier key")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/add-checkpoint") {
		http.Error(w, "this witness answers add-checkpoint", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "add-checkpoint is a POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest_bytes))
	if err != nil {
		http.Error(w, "the request is too long or broke off", http.StatusBadRequest)
		return
	}
	status, text := s.add(body)
	if status == http.StatusConflict {
		w.Header().Set("Content-Type", "text/x.tlog.size")
	} else {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(status)
	io.WriteString(w, text)
}

// request is what add-checkpoint gets.
type request struct {
	old        int64
	proof      modtlog.TreeProof
	checkpoint []byte
}

func parseRequest(body []byte) (q request, err error) {
	head, checkpoint, ok := bytes.Cut(body, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	number, ok2 := strings.CutPrefix(lines[0], "old ")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil || n > math.MaxInt64 || strconv.FormatUint(n, 10) != number || len(lines) > 64 {
		return q, errors.New("want an old size line, up to 63 hashes, an empty line and a checkpoint")
	}
	q = request{old: int64(n), checkpoint: checkpoint}
	for _, line := range lines[1:] {
		raw, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(raw) != modtlog.HashSize {
			return q, errors.New("a proof line is no hash in base64")
		}
		q.proof = append(q.proof, modtlog.Hash(raw))
	}
	return q, nil
}

// add answers one request with a status and a text.
func (s *Server) add(body []byte) (status int, text string) {
	q, err := parseRequest(body)
	if err != nil {
		return http.StatusBadRequest, err.Error() + "\n"
	}
	origin, cp, err := tlog.ParseCheckpoint(q.checkpoint)
	if err != nil {
		return http.StatusBadRequest, err.Error() + "\n"
	}
	known, ok := s.logs[origin]
	if !ok {
		return http.StatusNotFound, "this witness does not know the log\n"
	}
	n, err := note.Open(q.checkpoint, note.VerifierList(known...))
	if err != nil {
		return http.StatusForbidden, "no key of the log signed the checkpoint\n"
	}
	if cp.Size == 0 && cp.Root != sha256.Sum256(nil) {
		return http.StatusUnprocessableEntity, "the root of no leaves is the hash of nothing\n"
	}
	if q.old > cp.Size {
		return http.StatusBadRequest, "the old size is larger than the checkpoint's\n"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	free, err := exclusive(s.dir)
	if err != nil {
		return http.StatusInternalServerError, "the witness cannot lock its folder\n"
	}
	defer free()
	return s.judge(origin, q, cp, n.Text)
}

// judge compares a signed head with the last one and, if it grew out of that, stores
// and cosigns it.
func (s *Server) judge(origin string, q request, cp tlog.Checkpoint, head string) (int, string) {
	last, err := s.last(origin)
	if err != nil {
		return http.StatusInternalServerError, "the witness cannot read its folder\n"
	}
	switch {
	case q.old != last.Size:
		if last.Size == cp.Size && last.Root != cp.Root {
			s.accuse(origin, q.checkpoint)
		}
		return http.StatusConflict, strconv.FormatInt(last.Size, 10) + "\n"
	case q.old == cp.Size && q.old > 0 && cp.Root != last.Root:
		s.accuse(origin, q.checkpoint)
		return http.StatusConflict, strconv.FormatInt(last.Size, 10) + "\n"
	case (q.old == 0 || q.old == cp.Size) && len(q.proof) > 0:
		return http.StatusUnprocessableEntity, "nothing is to be proved, the proof must be empty\n"
	case q.old > 0 && q.old < cp.Size:
		if err := modtlog.CheckTree(q.proof, cp.Size, modtlog.Hash(cp.Root), last.Size, modtlog.Hash(last.Root)); err != nil {
			s.accuse(origin, q.checkpoint)
			return http.StatusUnprocessableEntity, "the proof does not lead from the last head to this one\n"
		}
	}
	if err := store(s.path(origin), q.checkpoint); err != nil {
		return http.StatusInternalServerError, "the witness cannot store the head\n"
	}
	return http.StatusOK, s.signer.line([]byte(head), s.now())
}

func (s *Server) path(origin string) string {
	h := sha256.Sum256([]byte(origin))
	return filepath.Join(s.dir, hex.EncodeToString(h[:16])+".checkpoint")
}

// last is the newest head of a log that was cosigned; size 0 for none.
func (s *Server) last(origin string) (tlog.Checkpoint, error) {
	b, err := os.ReadFile(s.path(origin))
	if errors.Is(err, fs.ErrNotExist) {
		return tlog.Checkpoint{}, nil
	}
	if err != nil {
		return tlog.Checkpoint{}, err
	}
	_, cp, err := tlog.ParseCheckpoint(b)
	return cp, err
}

// accuse keeps a signed head that does not fit the last one. Only the first is kept:
// one is enough, and the folder does not grow.
func (s *Server) accuse(origin string, checkpoint []byte) {
	f, err := os.OpenFile(s.path(origin)+".misfit", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	f.Write(checkpoint)
}

// exclusive waits until no other process judges a head in this folder.
func exclusive(dir string) (free func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil // which ends the lock
		}
		if err != syscall.EINTR {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// store replaces a file so that it is durable when store returns.
func store(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".draft.")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it was renamed
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
