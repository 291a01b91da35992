// Package logserver is the embedded nats-server that holds the audited stream,
// and the only package that links nats-server.
//
// # What it guarantees
//
//   - What the server acknowledged is on the disk: every write is followed by
//     fsync before the answer. The server's default of two minutes lost whole
//     streams in power cuts.
//   - The accounts and permissions of package grants are in force before the
//     first connection is accepted, and [Server.Reload] replaces them without
//     dropping anybody who may stay.
//   - [Start] returns only when the streams and queues exist with the settings
//     that the guarantees need, and the audited stream holds its first events.
//     Otherwise it returns an error that says what to do: [*OldServer],
//     [*NotDurable], bus.WeakSetting, bus.BrokenStream. A hole further on is
//     logged and served: the auditor names it, and no job starts until an admin
//     has acknowledged it, which needs a bus.
//   - [Server.Shutdown] returns after everything is written and every
//     goroutine has ended.
//
// # Streams that are made again
//
// A stream is made again from an archive beside the store, if one lies there at the start:
// [Server.Thin] writes one to let go of messages, which a stream that denies deletion does
// not allow, and a restored backup brings one. Sequences, times and bytes stay as they were.
// The archive goes before anybody can connect, so that it is never older than the stream;
// while it is there, it alone counts.
//
// # Who owns the state
//
// This process owns the store directory. The stream owns what happened; the
// configuration file is derived from the trust file and may be deleted.
//
// # What can go wrong
//
// A full disk freezes the server until it is restarted, so max_bytes of the
// streams must stay well under the size of the disk; [Server.Healthy] reports
// the freeze. A flipped bit on the disk can go unnoticed by the server; only
// the auditor's log tells.
package logserver
