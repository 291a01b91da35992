package events

var workKinds = []Def{
	define[WorkSalvaged]("work.salvaged", 1, "a round had left changes that no commit holds, and a private ref had kept them"),
	define[WorkSalvageFailed]("work.salvage_failed", 1, "a round had ended and its leftover changes could not be looked at or kept; they lie where the agent left them"),
}

// WorkSalvaged says where the leftovers of a round are kept. The subject's id
// is the round.
type WorkSalvaged struct {
	// Ref is the private ref, never overwritten.
	Ref string `json:"ref"`
	// Commit is the commit that the ref names; its first parent is what the
	// agent had checked out.
	Commit string `json:"commit"`
	// Base is the commit that was checked out; empty for a branch without
	// one.
	Base string `json:"base,omitempty"`
	// Files is how many paths differ from Base.
	Files int `json:"files"`
	// Bytes is the size of these files' content.
	Bytes int64 `json:"bytes"`
	// Nested is how many repositories inside the tree are named only, their
	// own uncommitted changes not kept.
	Nested int `json:"nested,omitzero"`
	// Missed is how many paths git could not read.
	Missed int `json:"missed,omitzero"`

	Extra Extra `json:",embed"`
}

// WorkSalvageFailed says why nothing was kept. It never means that there was
// nothing to keep.
type WorkSalvageFailed struct {
	// Code is the stable name of the ground, such as "git_failed".
	Code string `json:"code"`
	// Reason is the sentence for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}
