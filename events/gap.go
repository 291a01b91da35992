package events

var gapKinds = []Def{
	define[GapAcknowledged]("gap.acknowledged", 1, "an admin had said that faults of the stream are known, so that dispatch may open again"),
}

// FaultGap is the code of missing sequences that the log states itself; every other
// code is that of an [AuditFaultFound].
const FaultGap = "gap"

// GapAcknowledged is an admin's word that named faults are known. What is lost stays
// lost, and the log goes on saying so.
type GapAcknowledged struct {
	// Faults are those that it is about, and no others.
	Faults []FaultName `json:"faults"`
	// Reason is why dispatch may open again, for people.
	Reason string `json:"reason"`

	Extra Extra `json:",embed"`
}

// FaultName names one fault.
type FaultName struct {
	// Code is "gap", or the code of an audit.fault_found.
	Code string `json:"code"`
	// Seq is the first missing sequence of a gap, else the sequence of the
	// audit.fault_found.
	Seq uint64 `json:"seq"`
	// To is the last missing sequence of a gap.
	To uint64 `json:"to,omitzero"`
}
