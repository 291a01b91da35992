package events

var auditKinds = []Def{
	define[AuditSealed]("audit.sealed", 1, "the log had been made durable, its head recorded and signed"),
	define[AuditViolationFound]("audit.violation_found", 1, "the auditor had read an event that breaks a rule"),
	define[AuditGapFound]("audit.gap_found", 1, "the auditor had found sequences of the stream missing"),
	define[AuditFaultFound]("audit.fault_found", 1, "the auditor had found that the stream or the log is not what it was, and had closed dispatch"),
}

// AuditSealed publishes a signed head.
type AuditSealed struct {
	// Note is the signed checkpoint in full (C2SP tlog-checkpoint).
	Note string `json:"note"`
	// Size is the number of entries under the head.
	Size int64 `json:"size"`
	// Root is the RFC 6962 root in standard base64.
	Root string `json:"root"`
	// ThroughSeq is the last stream sequence under the head.
	ThroughSeq uint64 `json:"through_seq"`
	// Dispatch is "open", or "closed" while an integrity fault is not
	// acknowledged.
	Dispatch string `json:"dispatch"`

	Extra Extra `json:",embed"`
}

// AuditViolationFound names an event that breaks a rule.
type AuditViolationFound struct {
	// Seq is the sequence of the offending event.
	Seq uint64 `json:"seq"`
	// Code is the stable name of the rule, such as "bad_signature".
	Code string `json:"code"`
	// Job is the job it belongs to, when it belongs to one.
	Job string `json:"job,omitempty"`
	// Detail is the sentence for people.
	Detail string `json:"detail"`

	Extra Extra `json:",embed"`
}

// AuditGapFound names missing sequences, both ends included.
type AuditGapFound struct {
	// From is the first missing sequence.
	From uint64 `json:"from"`
	// To is the last missing sequence.
	To uint64 `json:"to"`

	Extra Extra `json:",embed"`
}

// AuditFaultFound says that the stream or the log is not what it was. Dispatch is
// closed until an admin has acknowledged it.
type AuditFaultFound struct {
	// Code is the stable name of what is wrong, such as "broken_stream".
	Code string `json:"code"`
	// Detail is the sentence for people.
	Detail string `json:"detail"`
	// From is the first sequence that the stream has lost after it was read, 0 for none.
	From uint64 `json:"from,omitzero"`
	// To is the last of these sequences.
	To uint64 `json:"to,omitzero"`

	Extra Extra `json:",embed"`
}
