//go:build !linux

package tlog

import "os"

// syncData makes a file's content and length durable. os.File.Sync asks darwin for
// F_FULLFSYNC, without which the drive's cache would be left out.
func syncData(f *os.File) error { return f.Sync() }
