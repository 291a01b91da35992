package evidence

import (
	"strconv"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/tlog"
)

// StoredOf is the message that a record was.
func StoredOf(r tlog.Record) events.Stored {
	return events.Stored{Seq: r.Seq, Time: r.Time, Subject: r.Subject, Header: r.Header, Data: r.Payload}
}

// MetaOf reads from a message what its entry says beside the digests. It is a pure
// function of the bytes, whatever they are, so that every auditor writes the same.
func MetaOf(st events.Stored) tlog.Meta {
	only := func(name string) string {
		if v := st.Header[name]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	m := tlog.Meta{
		ID: only(events.HeaderID), Expect: only(events.HeaderExpect),
		CEDigest: events.CEDigest(st.Header), Job: JobOf(st.Subject),
	}
	m.ActorKey, m.ActorSig, _ = strings.Cut(only(events.HeaderSignature), " ")
	return m
}

// JobOf is the job that a subject is about, empty if none. It follows the filter
// under which readers fetch a job, not the form of a good subject: what is stored
// under that filter belongs to the job, also where it is malformed.
func JobOf(subject string) string {
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

// Names says whether an entry names what the message says, as far as that can stand
// in an entry.
func Names(e tlog.Entry, m tlog.Meta) bool {
	same := func(entry, message string) bool { return entry == message || entry == "" && !standsInEntry(message) }
	return e.Job == m.Job && e.Meta == m.CEDigest && same(e.ID, m.ID) &&
		(e.Expect == m.Expect || e.Expect == "" && !isDecimal(m.Expect)) && same(e.Actor, m.ActorKey) && same(e.Sig, m.ActorSig)
}

// isDecimal says whether text is a number as entries write them.
func isDecimal(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// standsInEntry says whether a publisher's text can stand in an entry; what cannot is
// left out of it.
func standsInEntry(text string) bool {
	return text != "" && text != "-" && len(text) <= 256 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isTrust says whether a subject is that of a trust file.
func isTrust(subject string) bool { return strings.HasPrefix(subject, events.PrefixStored+".trust.") }
