package keys

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	all, err := LoadCheckpointKeys(path)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d keys, %v", len(all), err)
	}
	signer, vkey := all[0].Signer(), all[0].Verifier()
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
	_, err = LoadCheckpointKeys(path)
	wantErr(t, err, ErrExposed, "chmod 600")
	_, err = LoadCheckpointKeys(mustWrite(t, filepath.Join(filepath.Dir(path), "public"), vkey, 0o600))
	wantErr(t, err, ErrDamaged)
}

// TestReplacedKeysAreOverwritten: whoever still holds the old file open, or finds its
// blocks, does not find the key.
func TestReplacedKeysAreOverwritten(t *testing.T) {
	path := filepath.Join(folder(t), "checkpoint")
	var made []*CheckpointKey
	for range 2 {
		k, err := GenerateCheckpointKey("origin")
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, k)
	}
	if err := WriteCheckpointKey(path, made[0]); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, Next(path), "left behind", 0o600)
	for _, both := range [][]*CheckpointKey{{made[1], made[0]}, {made[1]}} {
		old, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		if err := ReplaceCheckpointKeys(path, both); err != nil {
			t.Fatal(err)
		}
		wantMode(t, path, 0o600)
		left, err := io.ReadAll(old)
		if err != nil || len(left) == 0 || strings.Contains(string(left), "PRIVATE") {
			t.Errorf("the old file holds %q, %v", left, err)
		}
		all, err := LoadCheckpointKeys(path)
		if err != nil || len(all) != len(both) || all[0].Verifier() != made[1].Verifier() {
			t.Errorf("%d keys, %v", len(all), err)
		}
	}
	if _, err := os.Lstat(Next(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second name is left: %v", err)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceCheckpointKeys(path+".link", made); err == nil {
		t.Error("a mounted secret was replaced")
	}
	if err := ReplaceCheckpointKeys(path, nil); err == nil {
		t.Error("a file without any key was written")
	}
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
	f.Add(k.skey())
	f.Add("PRIVATE+KEY+a+00000000+AQ==")
	f.Add(k.verifier)
	f.Fuzz(func(t *testing.T, text string) {
		k, err := parseCheckpointKey(text)
		if err != nil {
			return
		}
		signer, vkey := k.Signer(), k.Verifier()
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
