package tlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Seal makes everything appended so far durable and signs a head over it; without
// anything new it returns the head there is. The order is what makes it safe: data
// durable, read back and hashed, lock moved, and only then signed and shown.
func (l *Log) Seal() (Checkpoint, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return Checkpoint{}, l.err
	}
	if l.size == l.head.Size {
		return l.head, nil
	}
	if err := l.seal(); err != nil {
		return Checkpoint{}, l.fail(fmt.Errorf("seal %d leaves: %w", l.size, err))
	}
	// The head is out; what follows only spares the next Open some work.
	if l.d.due(l.size - l.jobs.covers) {
		if err := l.settle(); err != nil {
			return l.head, l.fail(fmt.Errorf("after sealing %d leaves: %w", l.size, err))
		}
	}
	return l.head, nil
}

// SignWith makes other keys sign the heads from the next seal on: two while the owner
// of the log rotates its key.
func (l *Log) SignWith(signer note.Signer, also ...note.Signer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signers = append([]note.Signer{signer}, also...)
}

func (l *Log) seal() error {
	if err := l.flush(); err != nil {
		return err
	}
	if err := l.syncTruth(); err != nil {
		return err
	}
	tree, err := l.readBack()
	if err != nil {
		return err
	}
	root := tree.root()
	text := headText(l.origin, l.size, root)
	if err := l.lock.Swap(l.lockText, []byte(text)); err != nil {
		return err
	}
	signed, err := signHead(text, l.signers...)
	if err != nil {
		return err
	}
	// Not synced: the lock is, and Open signs its head again, byte for byte.
	if err := l.d.replaceLater(l.path(checkpointName), signed); err != nil {
		return err
	}
	l.lockText = []byte(text)
	l.head = Checkpoint{Note: signed, Size: l.size, Root: root}
	l.tree, l.headEnt, l.headPrev = *tree, l.entEnd, l.prev
	return nil
}

// syncTruth syncs both files at once: the drive's cache is flushed for both anyway.
func (l *Log) syncTruth() error {
	var rawErr error
	var wg sync.WaitGroup
	wg.Go(func() { rawErr = l.d.sync(l.raw) })
	err := l.d.sync(l.entries)
	wg.Wait()
	return errors.Join(err, rawErr)
}

// readBack reads what is about to be signed from the file, walks its chain and grows the
// tree from those bytes. A bit that flipped on the way to the file stops here instead of
// under a signature.
func (l *Log) readBack() (*frontier, error) {
	tree := l.tree
	at := tlog.StoredHashCount(tree.n) * tlog.HashSize
	s := newScanner(l.entries, nil, l.headEnt, l.entEnd, 0, 0)
	prev := l.headPrev
	var link [2 * len(prev)]byte
	var hashes, scratch []byte
	for {
		entry, err := s.nextEntry()
		if errors.Is(err, io.EOF) && tree.n == l.size {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read leaf %d back: %w", tree.n, err)
		}
		hex.Encode(link[:], prev[:])
		if got, ok := prevOf(entry); !ok || !bytes.Equal(got, link[:]) {
			return nil, fmt.Errorf("read leaf %d back: %w: its link is not the one written", tree.n, ErrCorrupt)
		}
		prev = sha256.Sum256(entry)
		var leaf Hash
		leaf, scratch = leafHash(entry, scratch)
		hashes = tree.append(leaf, hashes)
		if len(hashes) >= flushAt_bytes {
			if err := l.d.writeAt(l.hashes, hashes, at); err != nil {
				return nil, err
			}
			at, hashes = at+int64(len(hashes)), hashes[:0]
		}
	}
	if prev != l.prev {
		return nil, fmt.Errorf("read leaf %d back: %w: it is not the one written", tree.n-1, ErrCorrupt)
	}
	return &tree, l.d.writeAt(l.hashes, hashes, at)
}

// settle makes checkpoint and derived files durable up to the signed head, so that Open replays
// from here.
func (l *Log) settle() error {
	if err := l.d.syncNow(l.path(checkpointName)); err != nil {
		return err
	}
	if err := l.d.sync(l.hashes); err != nil {
		return err
	}
	if err := l.d.sync(l.offsets); err != nil {
		return err
	}
	return l.jobs.flush(l.head.Size)
}
