package interop

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	fnote "github.com/transparency-dev/formats/note"
	theirclient "github.com/transparency-dev/witness/client/http"
	"github.com/transparency-dev/witness/persistence/inmemory"
	theirs "github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/witness"
)

// referenceWitness serves the witness of another author, which knows one log, and
// returns our client for it, with the verifier by which its author checks its lines.
func referenceWitness(t *testing.T, log note.Verifier) (*witness.Client, note.Verifier) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, "reference.example.org")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := fnote.NewSignerForCosignatureV1(skey)
	if err != nil {
		t.Fatal(err)
	}
	w, err := theirs.New(t.Context(), theirs.Opts{
		Persistence: inmemory.New(), Signers: []note.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (note.Verifier, bool, error) {
			return log, origin == log.Name(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", theirs.NewHTTPHandler(w).AddCheckpoint)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	text, err := fnote.VKeyToCosignatureV1(vkey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := witness.ParseVerifier(text)
	if err != nil {
		t.Fatalf("the reference witness's key %s: %v", text, err)
	}
	verifier, err := fnote.NewVerifierForCosignatureV1(text)
	if err != nil {
		t.Fatal(err)
	}
	return &witness.Client{Witness: witness.Witness{Name: "reference", Key: key, URL: server.URL}, HTTP: server.Client()}, verifier
}

func (l *testLog) grown(t *testing.T, to int64) witness.Grown {
	r := l.reader(t)
	return func(old int64) (tlog.TreeProof, error) { return r.ProveGrowth(old, to) }
}

func refused(t *testing.T, err error, status int) {
	t.Helper()
	var r *witness.Refused
	if !errors.As(err, &r) || r.Status != status {
		t.Errorf("want status %d, got %v", status, err)
	}
}

// TestReferenceWitnessCosigns shows real heads to the reference witness: it cosigns
// growth, and neither an old head, nor a fork that the log's real key has signed, nor
// the head of a log it does not know. Both sides judge every cosignature.
func TestReferenceWitnessCosigns(t *testing.T) {
	truth := newLog(t)
	lie := tell(t, truth.skey, truth.vkey, "lie ")
	client, verifier := referenceWitness(t, truth.verifier)
	ctx := t.Context()

	first := truth.grow(t, 6)
	line, err := client.Cosign(ctx, 0, first, truth.grown(t, first.Size))
	if err != nil {
		t.Fatalf("the first head: %v", err)
	}
	var last tlog.Checkpoint
	for _, n := range []int{1, 300} {
		old := first.Size
		if last.Size > 0 {
			old = last.Size
		}
		last = truth.grow(t, n)
		if line, err = client.Cosign(ctx, old, last, truth.grown(t, last.Size)); err != nil {
			t.Fatalf("growth to %d: %v", last.Size, err)
		}
	}
	if added, err := truth.log.Cosign(last, line); err != nil || !added {
		t.Fatalf("storing the cosignature: %v %v", added, err)
	}
	cosigned, err := truth.reader(t).Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := note.Open(cosigned.Note, note.VerifierList(truth.verifier, verifier)); err != nil || len(n.Sigs) != 2 {
		t.Errorf("its author's verifier on our cosigned checkpoint: %v", err)
	}
	policy, err := witness.ParsePolicy(fmt.Appendf(nil, "witness r %s %s\nquorum r\n", client.Witness.Key, client.Witness.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Judge(cosigned.Note, time.Now().Add(time.Minute)); err != nil {
		t.Errorf("our policy on its cosignature: %v", err)
	}

	// Who believes the witness to be elsewhere is told its size, and gets there by that.
	_, err = client.Add(ctx, first.Size, nil, last.Note)
	var stale *witness.Stale
	if !errors.As(err, &stale) || stale.Size != last.Size {
		t.Errorf("want status 409 with size %d, got %v", last.Size, err)
	}
	if _, err := client.Cosign(ctx, first.Size, last, truth.grown(t, last.Size)); err != nil {
		t.Errorf("the same head again, from an old size: %v", err)
	}
	if _, err = client.Cosign(ctx, first.Size, first, truth.grown(t, first.Size)); !errors.As(err, &stale) {
		t.Errorf("a head that went back: %v", err)
	}
	forked := lie.grow(t, int(last.Size)+20)
	_, err = client.Cosign(ctx, last.Size, forked, lie.grown(t, forked.Size))
	refused(t, err, http.StatusUnprocessableEntity)
	same := tell(t, truth.skey, truth.vkey, "lie ").grow(t, int(last.Size)-1)
	if same.Size != last.Size {
		t.Fatalf("a fork of %d leaves, want %d", same.Size, last.Size)
	}
	_, err = client.Add(ctx, last.Size, nil, same.Note)
	refused(t, err, http.StatusUnprocessableEntity)

	skey, vkey, err := note.GenerateKey(nil, "other.example.org/epoch-1")
	if err != nil {
		t.Fatal(err)
	}
	unknown := tell(t, skey, vkey, "").grow(t, 3)
	_, err = client.Add(ctx, 0, nil, unknown.Note)
	refused(t, err, http.StatusNotFound)
	stranger := newLog(t).grow(t, int(last.Size)+5) // the right origin, another key: any refusal will do
	if lines, err := client.Add(ctx, last.Size, nil, stranger.Note); err == nil {
		t.Errorf("a stranger's head was cosigned: %s", lines)
	}
}

// TestReferenceClientAsksOurWitness lets the other author's client drive our witness.
func TestReferenceClientAsksOurWitness(t *testing.T) {
	truth := newLog(t)
	lie := tell(t, truth.skey, truth.vkey, "lie ")
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := witness.NewSigner("w.example.org", public, func(m []byte) []byte { return ed25519.Sign(private, m) })
	if err != nil {
		t.Fatal(err)
	}
	ours, err := witness.NewServer(t.TempDir(), signer, []string{truth.vkey}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(ours)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := theirclient.NewWitness(at, server.Client())
	verifier, err := fnote.NewVerifierForCosignatureV1(signer.Verifier().String())
	if err != nil {
		t.Fatal(err)
	}
	show := func(l *testLog, old int64, head tlog.Checkpoint) (lines []byte, size uint64, err error) {
		var proof [][]byte
		if old > 0 && old < head.Size {
			p, err := l.reader(t).ProveGrowth(old, head.Size)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p {
				proof = append(proof, h[:])
			}
		}
		return client.Update(t.Context(), uint64(old), head.Note, proof)
	}
	first := truth.grow(t, 6)
	if _, _, err := show(truth, 0, first); err != nil {
		t.Fatalf("the first head: %v", err)
	}
	last := truth.grow(t, 300)
	lines, _, err := show(truth, first.Size, last)
	if err != nil {
		t.Fatalf("growth: %v", err)
	}
	if n, err := note.Open(append(last.Note[:len(last.Note):len(last.Note)], lines...), note.VerifierList(verifier)); err != nil || len(n.Sigs) != 1 {
		t.Errorf("its author's verifier on our cosignature %q: %v", lines, err)
	}
	if _, size, err := show(truth, first.Size, last); !errors.Is(err, theirs.ErrCheckpointStale) || size != uint64(last.Size) {
		t.Errorf("want stale with size %d, got %d, %v", last.Size, size, err)
	}
	forked := lie.grow(t, int(last.Size)+20)
	if _, _, err := show(lie, last.Size, forked); !errors.Is(err, theirs.ErrInvalidProof) {
		t.Errorf("a fork signed with the real key: %v", err)
	}
	skey, vkey, err := note.GenerateKey(nil, "other.example.org/epoch-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := show(nil, 0, tell(t, skey, vkey, "").grow(t, 3)); !errors.Is(err, theirs.ErrUnknownLog) {
		t.Errorf("a log that it does not know: %v", err)
	}
	if _, _, err := show(nil, 0, newLog(t).grow(t, 3)); !errors.Is(err, theirs.ErrNoValidSignature) {
		t.Errorf("a stranger's head: %v", err)
	}
	if _, _, err := client.Update(t.Context(), uint64(last.Size)+1, last.Note, nil); !errors.Is(err, theirs.ErrOldSizeInvalid) {
		t.Errorf("an old size above the head's: %v", err)
	}
}
