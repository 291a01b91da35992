package bus_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/logserver"
)

// numbers reads which chunks of a job are still there.
func numbers(t *testing.T, c *bus.Conn, job string) (list []int) {
	t.Helper()
	err := c.ReadOutput(t.Context(), "default", job, 1, 0, func(n int, _ string, _ int64, _ []byte) error {
		list = append(list, n)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The oldest output makes room for what is new, and nothing goes while there is
// room enough.
func TestOldestOutputMakesRoom(t *testing.T) {
	s := newSite(t, func(o *logserver.Options) { o.OutputMaxBytes = 1 << 20 })
	w, r := s.connect("worker"), s.connect("reader")
	piece := bytes.Repeat([]byte("x"), 16<<10)
	put := func(n int) error {
		return w.PutOutput(t.Context(), bus.OutputSubject("default", "job-1", 1, n, "worker"), "stdout", 0, piece)
	}
	n := 0
	for n = 1; n <= 10; n++ {
		if err := put(n); err != nil {
			t.Fatal(err)
		}
	}
	if dropped, err := s.srv.Admin().TrimOutput(t.Context()); dropped != 0 || err != nil {
		t.Errorf("dropped %d with room enough, %v", dropped, err)
	}
	full := error(nil)
	for ; full == nil && n < 100; n++ {
		full = put(n)
	}
	if !errors.Is(full, bus.ErrFull) {
		t.Fatalf("the stream is never full: %v", full)
	}
	dropped, err := s.srv.Admin().TrimOutput(t.Context())
	if dropped < 8 || dropped > 32 || err != nil {
		t.Errorf("dropped %d of about 64 chunks, %v", dropped, err)
	}
	if err := put(n); err != nil {
		t.Errorf("with room made: %v", err)
	}
	left := numbers(t, r, "job-1")
	if len(left) == 0 || left[0] != int(dropped)+1 || left[len(left)-1] != n {
		t.Errorf("dropped %d, left %v", dropped, left)
	}
}
