package tlog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
)

// A lock file has two slots, which are written in turn. A head is written over the one
// before the last, in place: that needs one sync and no new block, where replacing a
// file needs two syncs and the journal of the file system, and each seal waits for it. A
// write that a power cut tears leaves the last head as it was, in another block of the
// disk, and is known by its digest.
//
// A slot is a line "head <number> <SHA-256 of number and head>", the head, and zeros. The first line also keeps the beginning of a file that was cut from passing for a
// head. A file of another size holds one head and nothing else, as somebody wrote it by
// hand; the next swap makes slots of it.
const (
	lockSlot_bytes  = 1024
	lockBlock_bytes = 4096 // apart, so that no write touches the other slot's block
	lockFile_bytes  = lockBlock_bytes + lockSlot_bytes
)

// slotAt is where head number n stands.
func slotAt(n uint64) int64 { return int64(n%2) * lockBlock_bytes }

func makeSlot(n uint64, head []byte) ([]byte, error) {
	slot := fmt.Appendf(nil, "head %d %s\n%s", n, slotDigest(n, head), head)
	if len(slot) > lockSlot_bytes {
		return nil, fmt.Errorf("%w: a head of %d bytes does not fit into a lock file", ErrRecord, len(head))
	}
	return append(slot, make([]byte, lockSlot_bytes-len(slot))...), nil
}

// parseSlots reads the newest head of a lock file and its number, 0 for a file without
// slots.
func parseSlots(b []byte) (head []byte, n uint64, err error) {
	if len(b) != lockFile_bytes {
		if len(b) == 0 {
			return nil, 0, fmt.Errorf("%w: the file is empty", ErrMalformed)
		}
		return b, 0, nil
	}
	for at := range uint64(2) {
		start := slotAt(at)
		got, number, ok := parseSlot(b[start : start+lockSlot_bytes])
		if ok && number > n && number%2 == at {
			head, n = got, number
		}
	}
	if n == 0 {
		return nil, 0, fmt.Errorf("%w: neither slot holds a head", ErrMalformed)
	}
	return head, n, nil
}

func parseSlot(b []byte) (head []byte, n uint64, ok bool) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	f := bytes.Split(line, []byte(" "))
	if !ok || len(f) != 3 || string(f[0]) != "head" {
		return nil, 0, false
	}
	n, err := strconv.ParseUint(string(f[1]), 10, 64)
	head = bytes.TrimRight(rest, "\x00")
	return head, n, err == nil && slotDigest(n, head) == string(f[2])
}

// slotDigest covers the number as well, so that a number that was written over an older
// head is not taken for its.
func slotDigest(n uint64, head []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d\n%s", n, head)))
}

// ReadLockFile reads the head that a lock file holds, for who has a copy of one and
// swaps nothing.
func ReadLockFile(b []byte) (head []byte, err error) {
	head, _, err = parseSlots(b)
	return head, err
}
