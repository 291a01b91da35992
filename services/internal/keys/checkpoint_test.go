package keys

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func TestCheckpointKeyRoundTrip(t *testing.T) {
	k, err := GenerateCheckpointKey("banksman.example/site-1")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder(t), "checkpoint")
	if err := WriteCheckpointKey(path, k); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	wantErr(t, WriteCheckpointKey(path, k), ErrExists)
	signer, vkey, err := LoadCheckpointKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if vkey != k.Verifier() {
		t.Errorf("the public half is %s after loading, %s before", vkey, k.Verifier())
	}
	signed, err := note.Sign(&note.Note{Text: "banksman.example/site-1\n7\nAAAA\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(signed, note.VerifierList(verifier)); err != nil {
		t.Error(err)
	}
	os.Chmod(path, 0o640)
	_, _, err = LoadCheckpointKey(path)
	wantErr(t, err, ErrExposed, "chmod 600")
	_, _, err = LoadCheckpointKey(mustWrite(t, filepath.Join(filepath.Dir(path), "public"), vkey, 0o600))
	wantErr(t, err, ErrDamaged)
}

func TestCheckpointKeyNames(t *testing.T) {
	for _, name := range []string{"", "a b", "a+b", "a\nb", "\xff"} {
		if _, err := GenerateCheckpointKey(name); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	if err := WriteCheckpointKey(filepath.Join(folder(t), "x"), &CheckpointKey{}); err == nil {
		t.Error("the zero key is written")
	}
}

func FuzzParseCheckpointKey(f *testing.F) {
	k, err := GenerateCheckpointKey("origin")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.skey() + "\n")
	f.Add("PRIVATE+KEY+a+00000000+AQ==")
	f.Add(k.verifier)
	f.Fuzz(func(t *testing.T, text string) {
		signer, vkey, err := parseCheckpointKey(text)
		if err != nil {
			return
		}
		verifier, err := note.NewVerifier(vkey)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := signer.Sign([]byte("x\n"))
		if err != nil || !verifier.Verify([]byte("x\n"), sig) || verifier.KeyHash() != signer.KeyHash() {
			t.Errorf("the halves do not fit: %v", err)
		}
	})
}
