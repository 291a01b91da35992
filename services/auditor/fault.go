package auditor

import "fmt"

// Codes of integrity faults. Each of them closes dispatch until a person has looked.
const (
	faultRollback = "rollback"       // the stream, or the log, went back in time
	faultFork     = "fork"           // the stream holds other events than the sealed ones
	faultStream   = "broken_stream"  // the stream has lost events
	faultLog      = "damaged_log"    // the log is not what was signed
	faultKey      = "checkpoint_key" // the trust file in force does not list the checkpoint key
)

// Fault is an integrity fault: the auditor seals nothing more and heals nothing.
type Fault struct {
	Code   string
	Detail string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("integrity fault %s: %s; dispatch is closed, keep everything as it is and run 'banksman audit verify'", f.Code, f.Detail)
}

func fault(code, format string, args ...any) *Fault {
	return &Fault{Code: code, Detail: fmt.Sprintf(format, args...)}
}
