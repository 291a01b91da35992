// Package interop lets tools of others judge what banksman writes: Tessera's fsck
// recomputes an exported log from its entries, the reference witness cosigns its heads
// and its client asks ours, published vectors try what checks proofs, and a benchmark
// sets the log's speed beside that of Tessera's own. It is a module of its own, so that
// their dependencies never become the product's.
//
// Run it with "go -C services/auditor/interop test ./...".
package interop
