package tlog

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// TestCosignaturesStay: lines of others are stored beside the log's own, survive a
// restart, and are never put on another head.
func TestCosignaturesStay(t *testing.T) {
	dir := sealedDir(t, 5)
	signer, verifiers := keys(t, testOrigin)
	l, err := Open(dir, signer, FileLock(dir))
	must(t, err)
	head := l.Head()
	line := "— w.example.org " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 76)) + "\n"
	added, err := l.Cosign(head, line)
	must(t, err)
	if !added {
		t.Error("the newest head was not cosigned")
	}
	must(t, l.Close())
	l, err = Open(dir, signer, FileLock(dir))
	must(t, err)
	b, err := os.ReadFile(filepath.Join(dir, checkpointName))
	must(t, err)
	if !bytes.HasSuffix(b, []byte(line)) || l.Recovery() != (Recovery{}) {
		t.Errorf("after a restart: %q, %+v", b, l.Recovery())
	}
	if _, _, err := OpenCheckpoint(b, verifiers); err != nil {
		t.Error(err)
	}
	if _, err := l.Cosign(l.Head(), "no signature\n"); err == nil {
		t.Error("a line that is no signature was stored")
	}
	_, err = feedAndSeal(l, 9)
	must(t, err)
	if added, err := l.Cosign(head, line); err != nil || added {
		t.Errorf("an old head was cosigned: %v %v", added, err)
	}
	must(t, l.Close())
}
