package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	bolt "go.etcd.io/bbolt"
	boltErrors "go.etcd.io/bbolt/errors"
)

// format changes when the keys or values change; another format is begun anew.
const format = "banksman-index/2"

// closedMark in the marker file says that the database was synced and closed.
const closedMark = "closed"

// lockWait bounds the wait for another process that has the file open.
const lockWait = time.Second

var (
	bucketMeta   = []byte("meta")   // format, position
	bucketIDs    = []byte("ids")    // job id -> place
	bucketJobs   = []byte("jobs")   // place -> job
	bucketStatus = []byte("status") // status 0 place -> job id
	bucketPool   = []byte("pool")   // pool 0 status 0 place -> job id
	bucketFrom   = []byte("from")   // proposer 0 place -> job id
	bucketCounts = []byte("counts") // status -> number
	bucketFacts  = []byte("facts")  // the caller's

	keyFormat   = []byte("format")
	keyPosition = []byte("position")
)

var buckets = [][]byte{bucketMeta, bucketIDs, bucketJobs, bucketStatus, bucketPool, bucketFrom, bucketCounts, bucketFacts}

// Position is how far into the audit log the index is complete.
type Position struct {
	Epoch   int      `json:"epoch"`   // whose audit log it is
	Through uint64   `json:"through"` // last stream sequence
	Leaves  int64    `json:"leaves"`  // entries of the log
	Last    [32]byte `json:"last"`    // SHA-256 of the last of these entries
}

// Index is an open job index.
type Index struct {
	path string

	mu  sync.RWMutex // held for writing while db is replaced
	db  *bolt.DB
	why string // why Open began anew, empty if it did not
}

// Open opens the index at path. One that is missing, of another format, damaged or
// not surely on disk is begun anew, at the zero Position; [Index.Anew] says so.
func Open(path string) (*Index, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the job index: %w", err)
	}
	x := &Index{path: path}
	x.why = x.doubt()
	if x.why == "" {
		err := x.open()
		if err == nil {
			return x, nil
		}
		if errors.Is(err, boltErrors.ErrTimeout) {
			return nil, fmt.Errorf("open the job index %s: another process has it open", path)
		}
		x.why = err.Error()
	}
	if err := x.begin(); err != nil {
		return nil, fmt.Errorf("open the job index %s: %w", path, err)
	}
	return x, nil
}

// Anew says why Open began anew; it is empty if the index is the one that was kept.
func (x *Index) Anew() string { return x.why }

// doubt says why the file on disk cannot be believed, before it is looked at.
func (x *Index) doubt() string {
	mark, err := os.ReadFile(x.marker())
	if errors.Is(err, fs.ErrNotExist) {
		return "there was none"
	}
	if err != nil {
		return err.Error()
	}
	boot, err := bootID()
	if err != nil {
		boot = ""
	}
	if text := strings.TrimSpace(string(mark)); text != closedMark && (boot == "" || text != boot) {
		return "the machine was restarted while it was written"
	}
	return ""
}

func (x *Index) marker() string { return x.path + ".boot" }

// open opens the database that is there and looks at it briefly.
func (x *Index) open() error {
	if _, err := os.Stat(x.path); err != nil {
		return err
	}
	db, err := openDB(x.path)
	if err != nil {
		return err
	}
	x.db = db
	if err := x.check(); err != nil {
		closeDB(db)
		x.db = nil
		return err
	}
	return x.mark()
}

func openDB(path string) (db *bolt.DB, err error) {
	defer catch("open", &err)()
	return bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockWait, NoSync: true, NoGrowSync: true,
		FreelistType: bolt.FreelistMapType, InitialMmapSize: 64 << 20, NoStatistics: true,
	})
}

// closeWait bounds the wait for a database that cannot be closed any more.
const closeWait = time.Second

// closeDB closes a database that may be damaged. A write that ran into damage can leave
// the database's own lock held for ever; the wait for it is then given up, and the
// mapping stays until the process ends.
func closeDB(db *bolt.DB) error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer catch("close", &err)()
		err = db.Close()
	}()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return damaged("close", "its lock is held")
	}
}

// check reads what every later call relies on.
func (x *Index) check() error {
	return x.view("check", func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if tx.Bucket(name) == nil {
				return damaged("bucket "+string(name), "missing")
			}
		}
		if got := tx.Bucket(bucketMeta).Get(keyFormat); string(got) != format {
			return damaged("format", fmt.Sprintf("%q", got))
		}
		_, err := readPosition(tx)
		return err
	})
}

// mark writes which boot of the machine the database belongs to, before anything is
// written to it.
func (x *Index) mark() error {
	boot, err := bootID()
	if err != nil || boot == "" {
		boot = "unknown" // never believed
	}
	return renameio.WriteFile(x.marker(), []byte(boot+"\n"), 0o600)
}

// begin puts an empty database in the place of whatever is there.
func (x *Index) begin() error {
	for _, path := range []string{x.marker(), x.path} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	db, err := openDB(x.path)
	if err != nil {
		return err
	}
	x.db = db
	err = x.update("begin", func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		if err := writePosition(tx, Position{}); err != nil {
			return err
		}
		return tx.Bucket(bucketMeta).Put(keyFormat, []byte(format))
	})
	if err == nil {
		err = x.mark()
	}
	if err != nil {
		return errors.Join(err, closeDB(db))
	}
	return nil
}

// Reset empties the index.
func (x *Index) Reset() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != nil {
		_ = closeDB(x.db) // it may be damaged; what counts is that it goes
		x.db = nil
	}
	if err := x.begin(); err != nil {
		return fmt.Errorf("empty the job index %s: %w", x.path, err)
	}
	return nil
}

// Close syncs the database, so that the next Open believes it whatever happens to the
// machine, and lets the file go.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	err := x.db.Sync()
	err = errors.Join(err, closeDB(x.db))
	x.db = nil
	if err != nil {
		return fmt.Errorf("close the job index %s: %w", x.path, err)
	}
	return renameio.WriteFile(x.marker(), []byte(closedMark+"\n"), 0o600)
}

// catch turns a panic, or a fault in the mapped file, into ErrDamaged. Use it as
// "defer catch(what, &err)()".
func catch(what string, err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = damaged(what, r)
		}
	}
}

// view runs fn in a read transaction.
func (x *Index) view(what string, fn func(*bolt.Tx) error) (err error) {
	return x.run(what, func() error { return x.db.View(fn) })
}

// update runs fn in a write transaction.
func (x *Index) update(what string, fn func(*bolt.Tx) error) error {
	return x.run(what, func() error { return x.db.Update(fn) })
}

func (x *Index) run(what string, fn func() error) (err error) {
	if x.db == nil {
		return fmt.Errorf("job index: %s: it is closed", what)
	}
	defer catch(what, &err)()
	return fn()
}

func readPosition(tx *bolt.Tx) (Position, error) {
	var p Position
	body, err := checked(tx.Bucket(bucketMeta).Get(keyPosition))
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		return Position{}, damaged("position", err)
	}
	return p, nil
}

func writePosition(tx *bolt.Tx, p Position) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return tx.Bucket(bucketMeta).Put(keyPosition, withSum(body))
}

// Position is how far the index is complete.
func (x *Index) Position() (p Position, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err = x.view("position", func(tx *bolt.Tx) error {
		p, err = readPosition(tx)
		return err
	})
	return p, err
}

// Through is the last stream sequence that the index covers, 0 if it cannot be read.
func (x *Index) Through() uint64 {
	p, _ := x.Position()
	return p.Through
}

// Sum is a digest of everything that the index holds, position included. Two indexes
// that were made from the same events up to the same place have the same, whatever the
// batches were: counts, which follow from the rest, keep zeros of what once was.
func (x *Index) Sum() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	err = x.view("sum", func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if bytes.Equal(name, bucketCounts) {
				continue
			}
			err := tx.Bucket(name).ForEach(func(k, v []byte) error {
				fmt.Fprintf(h, "%s %d %d\n", name, len(k), len(v))
				h.Write(k)
				h.Write(v)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}
