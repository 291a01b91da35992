// Package imported reads the history that another program has kept, so that it
// can be looked at beside banksman's own: the audit trail of agent-safe, whose
// chain of hashes is verified, and the jobs that it lists.
//
// # What it guarantees
//
//   - Nothing of it becomes a job, an event or a decision of banksman. It is what
//     another program says, and every place that shows it says so.
//   - A trail counts as far as its chain holds; the first line that does not fit is
//     named, with its number and the reason.
//   - Where the trail and the list disagree about a job, the job says so.
//   - Secrets are replaced before anything is kept.
//
// # Who owns what
//
// The file in the site's state belongs to this package. It is derived: importing
// again makes it anew.
//
// # What can go wrong
//
// The chain of that program has no key and no anchor, so whoever could write the
// file could make another whole chain. Verifying finds accidents and clumsy edits.
package imported
