// Package salvage keeps what an agent has left in a git work tree, without
// touching it.
//
// # What it guarantees
//
//   - Everything that "git add --all" would take (changed, new and deleted paths;
//     ignored ones never) becomes one commit on top of what is checked out, under
//     a private ref that is written once and never overwritten.
//   - The user's files, index, branches, HEAD, stash, reflogs and operation state
//     (a merge, rebase or cherry-pick under way) are left as they are. The index
//     that git works on is a copy in a private folder, so a lock that another git
//     holds neither blocks nor is broken.
//   - Nothing of the user's runs but what reading a file needs: no hooks, no file
//     system monitor, no signing, no prompts, no network, no automatic clean-up.
//     Content filters (such as git-lfs) do run, because without them the stored
//     content would be another one; so callers that do not trust the tree run git
//     where the agent itself could run, by their own [Run].
//   - "Nothing to keep" is said only when git has looked and found nothing. Every
//     failure is a [*Failure] with a code, and leaves no half-written objects behind
//     on a disk that may be full.
//   - A linked work tree, a submodule's work tree, a branch without commits and a
//     detached HEAD are work trees like any other.
//
// # Who owns what
//
// The repository owns objects and refs; this package adds some. It owns its
// folder of temporary files and removes it.
//
// # What can go wrong
//
// A nested repository is recorded by its commit, as git does; its own uncommitted
// changes are counted, not kept. Paths that git cannot read are counted as
// missed, the others are kept. Empty folders are not content to git. What is
// staged but differs from the file is not kept apart: it stays in the user's
// index, untouched. Another git that writes to the repository at the moment of a
// failure may have its temporary object removed; it says so and can be run again.
package salvage
