package auditor

import (
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/tlog"
)

// recordOf is a stored message as the log takes it.
func recordOf(st events.Stored) tlog.Record {
	return tlog.Record{Seq: st.Seq, Time: st.Time, Subject: st.Subject, Header: st.Header, Payload: st.Data}
}

// storedOf is the inverse of recordOf.
func storedOf(r tlog.Record) events.Stored { return evidence.StoredOf(r) }

// metaOf reads from a message what its entry says beside the digests.
func metaOf(st events.Stored) tlog.Meta { return evidence.MetaOf(st) }

// jobOf is the job that a subject is about, empty if none.
func jobOf(subject string) string { return evidence.JobOf(subject) }

// auditFilter is what the auditor's own events of an epoch expect to be last under.
func auditFilter(epoch int) string { return events.Filter("audit", events.EpochID(epoch)) }

// isAudit says whether a message is one of those that cause no seal.
func isAudit(subject string) bool {
	return strings.HasPrefix(subject, events.PrefixStored+".audit.")
}

// isPatient says whether nobody waits until a head that covers a message is on the
// stream: that is so for all that happens to a job, except that it was approved, which a
// worker waits for, and for what the auditor says itself.
func isPatient(subject string) bool {
	s, err := events.ParseSubject(subject)
	return err == nil && (s.Family == "audit" || s.Family == "job" && s.Verb != "approved")
}

// underAuditFilter says whether auditFilter covers a subject.
func underAuditFilter(subject string, epoch int) bool {
	t := strings.Split(subject, ".")
	return len(t) >= 5 && isAudit(subject) && t[3] == events.EpochID(epoch)
}
