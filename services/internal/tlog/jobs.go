package tlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
)

// The jobs file is a hash table in pages, each with a checksum so that a damaged one
// is noticed before a wrong back link is logged. Page 0 is the head:
//
//	"bmjobs1\n"  pages uint64  jobs uint64  covers uint64  zeros  crc32c
//
// The others hold slots, filled from the front, and zeros up to the checksum; a slot is
// the first 16 bytes of SHA-256(job), which nobody can make collide, and leaf+1. A full
// page overflows into the next one.
//
// Values may be newer than covers says, never older: the leaves from covers on are
// replayed into pending when the log is opened.
const (
	jobsMagic    = "bmjobs1\n"
	page_bytes   = 512
	slot_bytes   = 24
	slotsPerPage = 21
	crcAt        = page_bytes - 4
	leastPages   = 2
)

type jobKey [16]byte

func keyOf(job string) jobKey {
	h := sha256.Sum256([]byte(job))
	return jobKey(h[:16])
}

type page [page_bytes]byte

// crcTable is the Castagnoli polynomial, which processors compute by themselves.
func crcOf(p *page) uint32 { return crc32.Checksum(p[:crcAt], crc32.MakeTable(crc32.Castagnoli)) }

func (p *page) seal()    { binary.BigEndian.PutUint32(p[crcAt:], crcOf(p)) }
func (p *page) ok() bool { return binary.BigEndian.Uint32(p[crcAt:]) == crcOf(p) }

// leaf returns slot i's value, -1 if the slot is empty.
func (p *page) leaf(i int) int64 {
	return int64(binary.BigEndian.Uint64(p[i*slot_bytes+16:])) - 1
}

func (p *page) key(i int) jobKey { return jobKey(p[i*slot_bytes:][:16]) }

// find returns the slot of key, or the first empty slot, or -1 if the page is full
// without it.
func (p *page) find(key jobKey) (slot int, found bool) {
	for i := range slotsPerPage {
		if p.leaf(i) < 0 {
			return i, false
		}
		if p.key(i) == key {
			return i, true
		}
	}
	return -1, false
}

func (p *page) set(i int, key jobKey, leaf int64) {
	copy(p[i*slot_bytes:], key[:])
	binary.BigEndian.PutUint64(p[i*slot_bytes+16:], uint64(leaf+1))
}

// jobTable answers which leaf holds the newest event of a job. The Log owns it.
type jobTable struct {
	d       disk
	path    string
	f       *os.File // nil: no usable table on disk
	pages   int64
	count   int64            // jobs on disk, at least nearly: it only decides when to grow
	covers  int64            // leaves below this are in the table
	pending map[jobKey]int64 // newest leaf of each job seen from covers on
	rebuilt map[jobKey]int64 // takes the place of the file while it is made again
}

// openJobs reads the head of the table; a missing or damaged one covers nothing.
func openJobs(d disk, path string) (*jobTable, error) {
	t := &jobTable{d: d, path: path, pending: map[jobKey]int64{}}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the job table: %w", err)
	}
	t.f = f
	if err := t.readHead(); err != nil {
		t.pages, t.count, t.covers = 0, 0, 0
	}
	return t, nil
}

func (t *jobTable) readHead() error {
	var p page
	if _, err := t.f.ReadAt(p[:], 0); err != nil {
		return fmt.Errorf("%w: jobs: head: %w", ErrDamaged, err)
	}
	if !p.ok() || string(p[:8]) != jobsMagic {
		return fmt.Errorf("%w: jobs: head", ErrDamaged)
	}
	t.pages = int64(binary.BigEndian.Uint64(p[8:]))
	t.count = int64(binary.BigEndian.Uint64(p[16:]))
	t.covers = int64(binary.BigEndian.Uint64(p[24:]))
	st, err := t.f.Stat()
	if err != nil {
		return err
	}
	if t.pages < leastPages || st.Size()/page_bytes != t.pages+1 || st.Size()%page_bytes != 0 || t.covers < 0 {
		return fmt.Errorf("%w: jobs: %d pages announced, the file has %d bytes", ErrDamaged, t.pages, st.Size())
	}
	return nil
}

func jobsHead(pages, count, covers int64) *page {
	var p page
	copy(p[:], jobsMagic)
	binary.BigEndian.PutUint64(p[8:], uint64(pages))
	binary.BigEndian.PutUint64(p[16:], uint64(count))
	binary.BigEndian.PutUint64(p[24:], uint64(covers))
	p.seal()
	return &p
}

func (t *jobTable) put(key jobKey, leaf int64) { t.pending[key] = leaf }

// get returns the leaf of the job's newest event, -1 if there is none.
func (t *jobTable) get(key jobKey) (int64, error) {
	if leaf, ok := t.pending[key]; ok {
		return leaf, nil
	}
	if t.rebuilt != nil {
		if leaf, ok := t.rebuilt[key]; ok {
			return leaf, nil
		}
		return -1, nil
	}
	if t.pages == 0 {
		return -1, nil
	}
	var p page
	read := func(n int64) (*page, error) { return &p, t.read(n, &p) }
	_, slot, found, err := t.seek(key, read)
	if err != nil || !found {
		return -1, err
	}
	return p.leaf(slot), nil
}

// seek walks from the key's home page to the slot that holds the key or, if none does,
// to the one that may take it.
func (t *jobTable) seek(key jobKey, read func(int64) (*page, error)) (n int64, slot int, found bool, err error) {
	home := int64(binary.BigEndian.Uint64(key[:8]) % uint64(t.pages))
	for i := range t.pages {
		n = 1 + (home+i)%t.pages
		p, err := read(n)
		if err != nil {
			return 0, 0, false, err
		}
		if slot, found = p.find(key); slot >= 0 {
			return n, slot, found, nil
		}
	}
	return 0, 0, false, fmt.Errorf("%w: jobs: every page is full", ErrDamaged)
}

func (t *jobTable) read(n int64, p *page) error {
	if _, err := t.f.ReadAt(p[:], n*page_bytes); err != nil {
		return fmt.Errorf("%w: jobs: page %d: %w", ErrDamaged, n, err)
	}
	return p.check(n)
}

// check says whether the page was read as it was written.
func (p *page) check(n int64) error {
	if !p.ok() {
		return fmt.Errorf("%w: jobs: page %d has a wrong checksum", ErrDamaged, n)
	}
	return nil
}

// flush moves pending, all of which lies below covers, into the file.
func (t *jobTable) flush(covers int64) error {
	if t.pages == 0 || t.count+int64(len(t.pending)) > t.pages*slotsPerPage/2 {
		all, err := t.all()
		if err != nil {
			return err
		}
		for k, leaf := range t.pending {
			all[k] = leaf
		}
		return t.write(all, covers)
	}
	dirty := map[int64]*page{}
	read := func(n int64) (*page, error) {
		if dirty[n] == nil {
			p := new(page)
			if err := t.read(n, p); err != nil {
				return nil, err
			}
			dirty[n] = p
		}
		return dirty[n], nil
	}
	added := int64(0)
	for key, leaf := range t.pending {
		n, slot, found, err := t.seek(key, read)
		if err != nil {
			return err
		}
		dirty[n].set(slot, key, leaf)
		if !found {
			added++
		}
	}
	for n, p := range dirty {
		p.seal()
		if err := t.d.writeAt(t.f, p[:], n*page_bytes); err != nil {
			return err
		}
	}
	if err := t.d.sync(t.f); err != nil {
		return err
	}
	// The head needs no sync: an older one only makes the next Open replay more.
	if err := t.d.writeAt(t.f, jobsHead(t.pages, t.count+added, covers)[:], 0); err != nil {
		return err
	}
	t.count, t.covers = t.count+added, covers
	clear(t.pending)
	return nil
}

// all reads every job on disk.
func (t *jobTable) all() (map[jobKey]int64, error) {
	jobs := make(map[jobKey]int64, t.count)
	err := t.each(func(key jobKey, leaf int64) { jobs[key] = leaf })
	return jobs, err
}

// each shows every job on disk.
func (t *jobTable) each(show func(jobKey, int64)) error {
	if t.pages == 0 {
		return nil
	}
	r := section(t.f, page_bytes, (t.pages+1)*page_bytes)
	var p page
	for n := int64(1); n <= t.pages; n++ {
		if _, err := io.ReadFull(r, p[:]); err != nil {
			return fmt.Errorf("%w: jobs: page %d: %w", ErrDamaged, n, err)
		}
		if err := p.check(n); err != nil {
			return err
		}
		for i := 0; i < slotsPerPage && p.leaf(i) >= 0; i++ {
			show(p.key(i), p.leaf(i))
		}
	}
	return nil
}

// write puts a new table in the place of the old one, with room to grow by four.
func (t *jobTable) write(jobs map[jobKey]int64, covers int64) error {
	b := tableOf(jobs, covers)
	if err := t.d.replace(t.path, b); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the job table: %w", err)
	}
	t.close()
	t.f = f
	t.pages, t.count, t.covers = int64(len(b)/page_bytes-1), int64(len(jobs)), covers
	clear(t.pending)
	return nil
}

func tableOf(jobs map[jobKey]int64, covers int64) []byte {
	n := int64(leastPages)
	for n*slotsPerPage < int64(len(jobs))*4 {
		n *= 2
	}
	t := jobTable{pages: n}
	pages := make([]page, n+1)
	pages[0] = *jobsHead(n, int64(len(jobs)), covers)
	read := func(i int64) (*page, error) { return &pages[i], nil }
	for key, leaf := range jobs {
		at, slot, _, _ := t.seek(key, read) // cannot fail: there is room
		pages[at].set(slot, key, leaf)
	}
	b := make([]byte, 0, len(pages)*page_bytes)
	for i := range pages {
		pages[i].seal()
		b = append(b, pages[i][:]...)
	}
	return b
}

// discard makes the next Open build the table again.
func (t *jobTable) discard() error {
	if t.f == nil {
		return nil
	}
	return t.d.writeAt(t.f, slices.Repeat([]byte{0}, page_bytes), 0)
}

func (t *jobTable) close() error {
	if t.f == nil {
		return nil
	}
	return t.f.Close()
}
