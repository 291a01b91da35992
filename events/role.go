package events

import "strings"

// Role is a power that the trust file gives to an actor.
type Role string

// The roles. Reader may log in and read; it publishes nothing.
const (
	RoleProposer   Role = "proposer"
	RoleGate       Role = "gate"
	RolePerson     Role = "person"
	RoleAdmin      Role = "admin"
	RoleWorker     Role = "worker"
	RoleSupervisor Role = "supervisor"
	RoleMonitor    Role = "monitor"
	RoleAuditor    Role = "auditor"
	RoleBus        Role = "bus"
	RoleRoot       Role = "root"
	RoleReader     Role = "reader"
)

// Roles lists every role in the order in which documents show them.
var Roles = []Role{
	RoleProposer, RoleGate, RolePerson, RoleAdmin, RoleWorker, RoleSupervisor,
	RoleMonitor, RoleAuditor, RoleBus, RoleRoot, RoleReader,
}

// Right lets a role publish kinds. Pattern is a kind, or a kind whose verb is
// "*" or ends in it; a pattern grants only kinds that the catalogue holds.
type Right struct {
	Role    Role
	Pattern string
	Only    string // what narrows the right, for people; the folds enforce it
}

// Rights is the one table of who may publish what. Permissions of the bus,
// trust checks and the README are derived from it.
var Rights = []Right{
	{RoleProposer, "job.proposed", ""},
	{RoleProposer, "job.handed_over", ""},
	{RoleProposer, "job.reported", ""},
	{RoleProposer, "proposal.refused", "digest and reason, never the content"},
	{RoleProposer, "ask.cancel_requested", "for the proposer of the job"},
	{RoleGate, "job.assessed", ""},
	{RoleGate, "job.approved", "only where policy says allow or a live grant covers it"},
	{RoleGate, "job.denied", "by policy"},
	{RoleGate, "job.expired", ""},
	{RoleGate, "job.cancelled", "while it is not running"},
	{RoleGate, "job.revoked", ""},
	{RoleGate, "job.lapsed", "when a pool is empty"},
	{RoleGate, "grant.used", ""},
	{RolePerson, "job.approved", ""},
	{RolePerson, "job.denied", ""},
	{RolePerson, "grant.given", ""},
	{RolePerson, "grant.revoked", ""},
	{RolePerson, "stop.ordered", ""},
	{RolePerson, "stop.lifted", ""},
	{RolePerson, "loop.*_requested", ""},
	{RolePerson, "alert.acknowledged", ""},
	{RolePerson, "ask.*", "cancel, revoke, comment, bar and lift a bar, waive the refusal of what is no secret"},
	{RoleAdmin, "policy.published", ""},
	{RoleAdmin, "gap.acknowledged", ""},
	{RoleAdmin, "text.erased", ""},
	{RoleAdmin, "epoch.close_requested", ""},
	{RoleWorker, "job.resolved", ""},
	{RoleWorker, "job.started", ""},
	{RoleWorker, "job.finished", ""},
	{RoleWorker, "job.declined", ""},
	{RoleWorker, "job.dead_lettered", ""},
	{RoleWorker, "job.cancelled", "while it is running"},
	{RoleWorker, "job.lapsed", "as a peer"},
	{RoleWorker, "worker.*", ""},
	{RoleWorker, "host.observed", ""},
	{RoleSupervisor, "loop.*", ""},
	{RoleSupervisor, "round.*", ""},
	{RoleSupervisor, "agent.*", ""},
	{RoleSupervisor, "work.*", ""},
	{RoleSupervisor, "stop.seen", ""},
	{RoleSupervisor, "stop.drained", ""},
	{RoleSupervisor, "stop.killed", ""},
	{RoleSupervisor, "stop.confirmed", ""},
	{RoleSupervisor, "host.observed", ""},
	{RoleMonitor, "alert.raised", ""},
	{RoleMonitor, "alert.updated", ""},
	{RoleMonitor, "alert.cleared", ""},
	{RoleMonitor, "stop.ordered", ""},
	{RoleMonitor, "stop.escalated", ""},
	{RoleAuditor, "audit.sealed", ""},
	{RoleAuditor, "audit.violation_found", ""},
	{RoleAuditor, "audit.gap_found", ""},
	{RoleAuditor, "audit.fault_found", ""},
	{RoleAuditor, "epoch.opened", ""},
	{RoleRoot, "trust.published", ""},
}

// Covers says whether the right's pattern names the kind.
func (r Right) Covers(k Kind) bool {
	family, verb, ok := strings.Cut(r.Pattern, ".")
	if !ok || family != k.Family() {
		return false
	}
	if suffix, wild := strings.CutPrefix(verb, "*"); wild {
		return strings.HasSuffix(k.Verb(), suffix)
	}
	return verb == k.Verb()
}

// MayPublish says whether an actor with this role may publish the kind. A
// request ("loop.pause_requested") is a person's: the supervisor's wildcard
// over its own family does not reach it. Another role makes a request only where
// the table names it.
func MayPublish(role Role, k Kind) bool {
	for _, r := range Rights {
		if r.Role != role || !r.Covers(k) {
			continue
		}
		if role == RolePerson || r.Pattern == string(k) || !strings.HasSuffix(string(k), "_requested") {
			return true
		}
	}
	return false
}

// Publishes lists the catalogued kinds that a role may publish, in catalogue
// order.
func Publishes(role Role) []Kind {
	var out []Kind
	for _, d := range Catalog() {
		if MayPublish(role, d.Kind) && (len(out) == 0 || out[len(out)-1] != d.Kind) {
			out = append(out, d.Kind)
		}
	}
	return out
}
