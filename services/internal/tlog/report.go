package tlog

import "fmt"

// What names a kind of problem. The texts are stable: reports are kept and compared.
type What string

// Problems with the truth. Any of them means that the log is not what was signed.
const (
	FileMissing    What = "file_missing"    // a file of the folder cannot be found
	EntryMalformed What = "entry_malformed" // an entry does not follow the grammar
	ChainBroken    What = "chain_broken"    // an entry does not name the digest of the one before
	SeqHole        What = "seq_hole"        // sequences are missing, or repeat, without a gap entry
	JobLink        What = "job_link"        // an entry names another leaf than its job's previous event
	StateMismatch  What = "state_mismatch"  // a state says something else about the jobs than the entries before it
	HeadersDigest  What = "headers_digest"  // stored headers differ from the entry's digest
	PayloadDigest  What = "payload_digest"  // the stored payload differs from the entry's digest
	RawMalformed   What = "raw_malformed"   // raw.log does not hold the frame of an entry
	RootMismatch   What = "root_mismatch"   // the recomputed root is not the signed one
	Truncated      What = "truncated"       // fewer whole entries than the checkpoint covers
)

// Problems with the heads.
const (
	CheckpointMissing   What = "checkpoint_missing"
	CheckpointMalformed What = "checkpoint_malformed"
	CheckpointSignature What = "checkpoint_signature" // none of the keys signed it, or a signature is wrong
	CheckpointOrigin    What = "checkpoint_origin"    // it belongs to another log
	CheckpointStale     What = "checkpoint_stale"     // it is older than the lock; the next Open signs again
	LockMalformed       What = "lock_malformed"
	LockOrigin          What = "lock_origin"
	LockBehind          What = "lock_behind" // the lock is older than the checkpoint
	Rollback            What = "rollback"    // the lock covers more than the folder holds
	Fork                What = "fork"        // the lock has another root for the same size
)

// Problems that a crash explains or that the next Open repairs from the truth.
const (
	Torn            What = "torn"             // bytes after the last whole entry or frame, beyond the signed head
	HashesMismatch  What = "hashes_mismatch"  // stored hashes differ from the recomputed ones
	OffsetsMismatch What = "offsets_mismatch" // offsets differ from the recomputed ones
	JobsMismatch    What = "jobs_mismatch"    // the job table differs from the recomputed one
)

// Problem is one thing that Verify found.
type Problem struct {
	Leaf   int64  // -1: not about one leaf
	Seq    uint64 // stream sequence, 0 if there is none
	What   What
	Detail string
}

// String renders the problem for people.
func (p Problem) String() string {
	if p.Leaf < 0 {
		return fmt.Sprintf("%s: %s", p.What, p.Detail)
	}
	return fmt.Sprintf("%s at leaf %d (sequence %d): %s", p.What, p.Leaf, p.Seq, p.Detail)
}

// Gap is a hole in the stream that the log states itself.
type Gap struct {
	Leaf     int64
	From, To uint64
}

// Report is what [Verify] found.
type Report struct {
	Origin         string   // from the genesis
	Old            Before   // where the log goes on; zero for the first one
	Size           int64    // whole entries, sealed or not
	Root           [32]byte // recomputed over Size leaves
	LastSeq        uint64   // stream sequence of the last entry
	Unsealed       int64    // entries beyond the checkpoint
	CheckpointSize int64    // 0: there is no readable checkpoint
	LockSize       int64    // 0: the folder holds no lock, it lives elsewhere
	Live           bool     // a writer had the log open; its unfinished tail is no problem
	Gaps           []Gap
	Problems       []Problem // in the order found, at most 100
	Suppressed     int       // problems beyond that
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// FirstBad returns the problem at the lowest leaf.
func (r *Report) FirstBad() (Problem, bool) {
	best, found := Problem{}, false
	for _, p := range r.Problems {
		if p.Leaf >= 0 && (!found || p.Leaf < best.Leaf) {
			best, found = p, true
		}
	}
	return best, found
}

// Has reports whether a problem of this kind was found.
func (r *Report) Has(what What) bool {
	for _, p := range r.Problems {
		if p.What == what {
			return true
		}
	}
	return false
}

const maxProblems = 100

func (r *Report) add(leaf int64, seq uint64, what What, format string, args ...any) {
	if len(r.Problems) == maxProblems {
		r.Suppressed++
		return
	}
	r.Problems = append(r.Problems, Problem{Leaf: leaf, Seq: seq, What: what, Detail: fmt.Sprintf(format, args...)})
}
