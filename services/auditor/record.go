package auditor

import (
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// recordOf is a stored message as the log takes it.
func recordOf(st events.Stored) tlog.Record {
	return tlog.Record{Seq: st.Seq, Time: st.Time, Subject: st.Subject, Header: st.Header, Payload: st.Data}
}

// storedOf is the inverse of recordOf.
func storedOf(r tlog.Record) events.Stored {
	return events.Stored{Seq: r.Seq, Time: r.Time, Subject: r.Subject, Header: r.Header, Data: r.Payload}
}

// metaOf reads from a message what its entry says beside the digests. It is a pure
// function of the bytes, whatever they are, so that every auditor writes the same.
func metaOf(st events.Stored) tlog.Meta {
	only := func(name string) string {
		if v := st.Header[name]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	m := tlog.Meta{
		ID: only(events.HeaderID), Expect: only(events.HeaderExpect),
		CEDigest: events.CEDigest(st.Header), Job: jobOf(st.Subject),
	}
	m.ActorKey, m.ActorSig, _ = strings.Cut(only(events.HeaderSignature), " ")
	return m
}

// jobOf is the job that a subject is about, empty if none. It follows the filter
// under which readers fetch a job, not the form of a good subject: what is stored
// under that filter belongs to the job, also where it is malformed.
func jobOf(subject string) string {
	t := strings.Split(subject, ".")
	if len(t) < 5 || t[0] != events.PrefixStored || t[1] != "job" || !plainID(t[3]) {
		return ""
	}
	return t[3]
}

// plainID keeps what cannot be an id out of the index.
func plainID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// auditFilter is what the auditor's own events expect to be last under.
var auditFilter = events.Filter("audit", site.Epoch)

// isAudit says whether a message is one of those that cause no seal.
func isAudit(subject string) bool {
	return strings.HasPrefix(subject, events.PrefixStored+".audit.")
}

// underAuditFilter says whether auditFilter covers a subject.
func underAuditFilter(subject string) bool {
	t := strings.Split(subject, ".")
	return len(t) >= 5 && isAudit(subject) && t[3] == site.Epoch
}
