package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/redact"
)

// collect publishes everything of a recorder and returns the streams.
func collect(t interface{ Fatalf(string, ...any) }, r *recorder) (streams map[string][]byte, chunks map[string]int) {
	streams, chunks = map[string][]byte{}, map[string]int{}
	n := 0
	r.publish(context.Background(), slog.New(slog.DiscardHandler), func(_ context.Context, c chunk) error {
		n++
		if c.n != n || len(c.data) == 0 || len(c.data) > chunkBytes {
			t.Fatalf("chunk %d of %d bytes came as number %d", c.n, len(c.data), n)
		}
		streams[c.stream] = append(streams[c.stream], c.data...)
		chunks[c.stream]++
		return nil
	})
	return streams, chunks
}

// Whatever is written, what is kept is the head and the tail of it, and the
// description fits the chunks.
func TestRecorderKeepsHeadAndTail(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(2, 3*chunkBytes).Draw(t, "limit")
		r := newRecorder(filepath.Join(dir, "spool"), limit, time.Now(), redact.New())
		defer r.discard()
		written := map[string][]byte{}
		for i := range rapid.IntRange(0, 12).Draw(t, "writes") {
			stream := rapid.IntRange(0, 1).Draw(t, "stream")
			p := bytes.Repeat([]byte{byte('a' + i), byte(i), 'x'}, rapid.IntRange(0, chunkBytes).Draw(t, "size"))
			n, err := r.tapes[stream].Write(p)
			if n != len(p) || err != nil {
				t.Fatalf("wrote %d of %d: %v", n, len(p), err)
			}
			written[streamNames[stream]] = append(written[streamNames[stream]], p...)
		}
		stdout, stderr, fault := r.close()
		if fault != nil {
			t.Fatal(fault)
		}
		streams, chunks := collect(t, r)
		for name, out := range map[string]events.Output{"stdout": stdout, "stderr": stderr} {
			all, want := written[name], written[name]
			if int64(len(all)) > limit {
				head, tail := limit/2, limit-limit/2
				want = append(bytes.Clone(all[:head]), all[int64(len(all))-tail:]...)
			}
			if !bytes.Equal(streams[name], want) {
				t.Fatalf("%s: kept %d bytes of %d, want %d", name, len(streams[name]), len(all), len(want))
			}
			expected := events.Output{
				Bytes: int64(len(all)), StoredBytes: int64(len(want)), SHA256: events.Digest(want),
				Chunks: chunks[name], CutBytes: int64(len(all) - len(want)),
			}
			if out != expected {
				t.Fatalf("%s: described as %+v, want %+v", name, out, expected)
			}
		}
	})
}

// A ring holds the end of everything that was written, whatever the sizes.
func TestRingKeepsTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 4*ringBlock).Draw(t, "limit")
		r, all, cut := ring{limit: limit}, []byte(nil), int64(0)
		for i := range rapid.IntRange(0, 40).Draw(t, "writes") {
			p := bytes.Repeat([]byte{byte(i), 1, 2}, rapid.IntRange(0, ringBlock).Draw(t, "size"))
			all = append(all, p...)
			cut += r.write(p)
			want := all[max(0, int64(len(all))-limit):]
			if got := bytes.Join(r.parts(), nil); !bytes.Equal(got, want) || cut != int64(len(all)-len(want)) {
				t.Fatalf("holds %d bytes and has cut %d of %d, want the last %d", len(got), cut, len(all), len(want))
			}
			if most := limit/ringBlock + 2; int64(len(r.blocks)) > most {
				t.Fatalf("%d blocks for %d bytes", len(r.blocks), limit)
			}
		}
	})
}

func TestWriterDoesNotWaitForTheBus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	r := newRecorder(path, 16<<20, time.Now(), redact.New())
	ctx, stop := context.WithCancel(t.Context())
	stuck := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.publish(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, _ chunk) error {
			close(stuck)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	all := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	_, err := io.Copy(r.stdout(), bytes.NewReader(all)) // far more than memory holds
	must(t, err)
	<-stuck
	r.mu.Lock()
	inMemory := len(r.queue.memory)
	r.mu.Unlock()
	if inMemory > spoolInMemory {
		t.Errorf("%d chunks in memory", inMemory)
	}
	out, _, fault := r.close()
	must(t, fault)
	stop()
	<-ended
	must(t, r.rest())

	next, err := leftRecorder(path)
	must(t, err)
	streams, _ := collect(t, next)
	if !bytes.Equal(streams["stdout"], all) || out.SHA256 != events.Digest(all) {
		t.Errorf("%d of %d bytes survived the worker", len(streams["stdout"]), len(all))
	}
}

func TestOutputFlowsWhileTheJobRuns(t *testing.T) {
	r := newRecorder(filepath.Join(t.TempDir(), "spool"), 1<<20, time.Now(), redact.New())
	got := make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.publish(ctx, slog.New(slog.DiscardHandler), func(_ context.Context, c chunk) error {
			got <- c.stream + ":" + string(c.data)
			return nil
		})
	}()
	for _, word := range []string{"one", "two"} {
		_, _ = r.stderr().Write([]byte(word))
		if c := <-got; c != "stderr:"+word { // before anything is closed
			t.Errorf("got %q", c)
		}
	}
	stop()
	<-ended
}

func TestOutputThatCannotBeSpooledIsCut(t *testing.T) {
	r := newRecorder(filepath.Join(t.TempDir(), "no", "such", "folder"), 16<<20, time.Now(), redact.New())
	size := (spoolInMemory + 3) * chunkBytes
	_, err := r.stdout().Write(make([]byte, size))
	must(t, err)
	out, _, fault := r.close()
	if fault == nil || out.CutBytes != 3*chunkBytes || out.Bytes != int64(size) || out.StoredBytes+out.CutBytes != out.Bytes {
		t.Errorf("%+v, %v", out, fault)
	}
	if streams, _ := collect(t, r); int64(len(streams["stdout"])) != out.StoredBytes {
		t.Errorf("%d bytes delivered", len(streams["stdout"]))
	}
}

// A spool is a queue, wherever its chunks happen to lie.
func TestSpoolIsAQueue(t *testing.T) {
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		s := &spool{path: filepath.Join(dir, fmt.Sprint(runs))}
		var model []chunk
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "count") {
					n++
					c := chunk{n: n, stream: streamNames[n%2], atMS: int64(n), data: []byte{byte(n), byte(n >> 8)}}
					if err := s.push(c); err != nil {
						t.Fatal(err)
					}
					model = append(model, c)
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "count") {
					c, ok, err := s.front()
					if err != nil || ok != (len(model) > 0) {
						t.Fatalf("front: %v, %v, %d expected", ok, err, len(model))
					}
					if !ok {
						return
					}
					if c.n != model[0].n || c.stream != model[0].stream || c.atMS != model[0].atMS || !bytes.Equal(c.data, model[0].data) {
						t.Fatalf("got %+v, want %+v", c, model[0])
					}
					s.advance(c)
					model = model[1:]
				}
			},
			"live on": func(t *rapid.T) {
				if err := s.keep(); err != nil {
					t.Fatal(err)
				}
				next, err := reopenSpool(s.path)
				if err != nil {
					t.Fatal(err)
				}
				s = next
			},
		})
		s.close()
	})
}

func FuzzReadChunk(f *testing.F) {
	s := &spool{path: filepath.Join(f.TempDir(), "spool")}
	for i := range 3 {
		if err := s.write(chunk{n: i + 1, stream: "stderr", atMS: 7, data: []byte("some output")}); err != nil {
			f.Fatal(err)
		}
	}
	s.close()
	whole, err := os.ReadFile(s.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-4])
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			c, err := readChunk(r)
			if err != nil {
				return
			}
			if len(c.data) > chunkBytes || c.stream != "stdout" && c.stream != "stderr" {
				t.Fatalf("read %+v", c)
			}
		}
	})
}

func TestTornSpoolEndsAtTheLastWholeChunk(t *testing.T) {
	s := &spool{path: filepath.Join(t.TempDir(), "spool")}
	for i := range 2 {
		must(t, s.write(chunk{n: i + 1, stream: "stdout", data: []byte("some output")}))
	}
	s.close()
	must(t, os.Truncate(s.path, s.end-3))
	next, err := leftRecorder(s.path)
	must(t, err)
	if streams, _ := collect(t, next); string(streams["stdout"]) != "some output" {
		t.Errorf("kept %q", streams["stdout"])
	}
}

// The two streams keep their order although nobody has published anything yet:
// what is written a while after something else becomes a later chunk.
func TestOrderDoesNotDependOnThePublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(filepath.Join(t.TempDir(), "spool"), 1<<20, time.Now(), redact.New())
		defer r.discard()
		for i := range 3 {
			for _, tape := range []*tape{r.stdout(), r.stderr()} {
				fmt.Fprintf(tape, "%s %d\n", tape.name, i)
				<-time.After(batchFor)
			}
		}
		_, _, fault := r.close()
		must(t, fault)
		var got []string
		r.publish(context.Background(), slog.New(slog.DiscardHandler), func(_ context.Context, c chunk) error {
			got = append(got, fmt.Sprintf("%s at %d", bytes.TrimSpace(c.data), c.atMS))
			return nil
		})
		want := []string{"stdout 0 at 0", "stderr 0 at 100", "stdout 1 at 200", "stderr 1 at 300", "stdout 2 at 400", "stderr 2 at 500"}
		if !slices.Equal(got, want) {
			t.Errorf("stored as %q", got)
		}
	})
}
