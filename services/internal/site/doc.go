// Package site is the layout of a banksman folder: where keys, sockets, state
// and the two signed first events of a site lie, and how they come to be.
//
// # What it guarantees
//
//   - [Layout] is the only place that knows a path inside the folder.
//   - [Plan.Create] makes a whole site or nothing: it builds beside the target and
//     renames. It refuses a folder that holds anything, and a link to one.
//   - Folders are 0700 and files 0600, certificates 0644. The root key and personal
//     signing keys are encrypted when a passphrase is given; nothing that a running
//     service needs ever is.
//
// # Who owns what
//
// The operator owns the folder. Services write only below run/ and state/.
//
// # What can go wrong
//
// A folder inside a working tree that jobs may write to would let them change
// their own judge; policy refuses such roots. A process that is killed while it
// makes a site leaves a draft ".banksman-init-*" beside the target, which may be
// deleted.
package site
