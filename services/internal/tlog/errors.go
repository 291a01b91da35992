package tlog

import "errors"

// Errors to branch on. Each is wrapped with what was attempted and on what.
var (
	// ErrRollback: the folder holds less than the lock, or the lock less than the
	// checkpoint. A backup was put back, or somebody took history away.
	ErrRollback = errors.New("the log went back in time")
	// ErrFork: the folder holds another history than the signed one of the same size.
	ErrFork = errors.New("the log differs from its signed head")
	// ErrCorrupt: an entry or a raw frame under the signed head does not hold together.
	ErrCorrupt = errors.New("the log is damaged under its signed head")
	// ErrNoHead: there is no head in the lock, so no log was ever finished here.
	ErrNoHead = errors.New("the lock holds no head")
	// ErrInUse: another process, or another Log of this one, writes the folder.
	ErrInUse = errors.New("another writer has the log open")
	// ErrLockMoved: the lock did not hold the head that was to be replaced.
	ErrLockMoved = errors.New("the lock moved: somebody else sealed")
	// ErrHole: the record's sequence leaves some out; AppendGap says so in the log.
	ErrHole = errors.New("sequences are missing before this record")
	// ErrOrder: the record or gap does not start after what the log already covers.
	ErrOrder = errors.New("the log already covers this sequence")
	// ErrRecord: the record cannot be expressed as an entry.
	ErrRecord = errors.New("the record cannot be logged")
	// ErrDiffers: a record is not the one that was logged.
	ErrDiffers = errors.New("the record differs from the logged one")
	// ErrMalformed: bytes do not follow the grammar.
	ErrMalformed = errors.New("malformed")
	// ErrDamaged: a derived file cannot be read; opening the folder makes it again.
	ErrDamaged = errors.New("a derived file is damaged")
	// ErrRange: there is no such leaf under the head.
	ErrRange = errors.New("no such leaf")
	// ErrClosed: the Log was closed.
	ErrClosed = errors.New("the log is closed")
)
