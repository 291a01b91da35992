package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/redact"
)

// However an agent writes, the chunks of a stream are its head and its tail,
// in order, and the summary says so.
func TestScrollKeepsHeadAndTail(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(2, 4096).Draw(t, "limit"))
		path := filepath.Join(dir, "log")
		s, err := openScroll(path, limit, redact.New())
		if err != nil {
			t.Fatal(err)
		}
		defer s.file.Close()
		var all [2][]byte
		for i, n := 0, rapid.IntRange(0, 40).Draw(t, "writes"); i < n; i++ {
			to := rapid.IntRange(0, 1).Draw(t, "stream")
			text := bytes.Repeat(fmt.Appendf(nil, "%d.", i), rapid.IntRange(0, 200).Draw(t, "length"))
			all[to] = append(all[to], text...)
			if _, err := s.streams[to].Write(text); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "flush") {
				s.front(true)
			}
		}
		var sums [2]events.Output
		sums[0], sums[1] = s.close()
		var got [2][]byte
		for n := 1; ; n++ {
			p, ok, done := s.front(true)
			if done {
				break
			}
			if !ok || p.n != n {
				t.Fatalf("chunk %d follows %d", p.n, n-1)
			}
			data, err := s.load(p)
			if err != nil {
				t.Fatal(err)
			}
			for i, side := range s.streams {
				if p.stream == side {
					got[i] = append(got[i], data...)
				}
			}
			s.advance()
		}
		for i := range got {
			checkKept(t, all[i], got[i], sums[i])
		}
		if total := int64(len(got[0]) + len(got[1])); total > limit {
			t.Errorf("%d bytes are kept, the limit is %d", total, limit)
		}
		if len(all[0])+len(all[1]) <= int(limit) && sums[0].CutBytes+sums[1].CutBytes > 0 {
			t.Error("something was cut within the limit")
		}
	})
}

func checkKept(t *rapid.T, all, got []byte, sum events.Output) {
	if sum.Bytes != int64(len(all)) || sum.StoredBytes != int64(len(got)) || sum.CutBytes != sum.Bytes-sum.StoredBytes || sum.SHA256 != events.Digest(got) {
		t.Fatalf("%+v for %d bytes of which %d are kept", sum, len(all), len(got))
	}
	for head := 0; head <= len(got); head++ {
		if bytes.HasPrefix(all, got[:head]) && bytes.HasSuffix(all, got[head:]) {
			return
		}
	}
	t.Fatalf("%q is no head and tail of %q", got, all)
}

func TestScrollSaysWhatItLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s, err := openScroll(path, 20, redact.New())
	must(t, err)
	defer s.file.Close()
	fmt.Fprint(s.stdout(), "0123456789")
	fmt.Fprint(s.stderr(), "abcdefghijklmnopqrst")
	s.close()
	text, err := os.ReadFile(path)
	if want := "0123456789\n[banksman: 10 bytes left out]\nklmnopqrst"; err != nil || string(text) != want {
		t.Errorf("log %q, want %q, %v", text, want, err)
	}
}

// Secrets are taken out before anything reaches the file, also where the agent
// writes them in pieces.
func TestScrollHoldsNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const token = "agent-FAKE-0123456789"
	s, err := openScroll(path, 1<<20, redact.New(redact.Telltales([]string{"BANKSMAN_TOKEN=" + token, "PWD=/work", "TERM=dumb"})...))
	if err != nil {
		t.Fatal(err)
	}
	defer s.file.Close()
	for _, b := range []byte("I am " + token + " in /work\n") {
		_, _ = s.stdout().Write([]byte{b})
		s.front(true)
		_, _ = s.stderr().Write([]byte{b})
	}
	stdout, stderr := s.close()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(got, []byte("[redacted: BANKSMAN_TOKEN]")); n != 2 || bytes.Contains(got, []byte("FAKE")) || stdout.Bytes != stderr.Bytes {
		t.Errorf("%d redacted in %q", n, got)
	}
}
