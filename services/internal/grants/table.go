package grants

import (
	"slices"

	"github.com/banksman/banksman/events"
)

// Names of what the bus hosts.
const (
	Stream       = "BANKSMAN"        // bm.>, the audited stream
	OutputStream = "BANKSMAN_OUTPUT" // bmo.>, what jobs wrote
	TextStream   = "BANKSMAN_BLOBS"  // bmb.>, words of people, which can be erased
	JobsBucket   = "bm_jobs"         // key-value view of open and recent jobs
	JobsStream   = "KV_" + JobsBucket
	HeadsBucket  = "bm_heads" // key-value: the newest head that may be signed, per log
	HeadsStream  = "KV_" + HeadsBucket
)

// Subject prefixes that this package gives a meaning.
const (
	// APIPrefix stands where a role account sees the JetStream API. It cannot
	// be $JS.API: a role account has no JetStream and would answer itself.
	APIPrefix = "CORE.API"
	// HeadsPrefix stands where the API of HEADS is seen from elsewhere.
	HeadsPrefix = "HEADS.API"
	// DeskPrefix is where the bus answers readers who want to page through the
	// stream; see the package comment.
	DeskPrefix = "bmdesk"
	// InboxPrefix, a dot and the actor is where answers to an actor arrive.
	InboxPrefix = "_IB"
	// HeartbeatPrefix begins every heartbeat: bml.hb.<scope>.<actor>.<session>.
	HeartbeatPrefix = events.PrefixLive + ".hb"
	// LivePrefix begins the live copy of every stored event.
	LivePrefix = events.PrefixLive + "." + events.PrefixStored
)

// Account is a NATS account of the site.
type Account string

// The accounts. Core holds JetStream and the bus. Heads holds the bucket of heads and
// has no users: only the auditor reads and writes it, and the bus may make it but neither
// write, empty nor delete it. Each other one is a role's.
const (
	Core       Account = "CORE"
	Heads      Account = "HEADS"
	Proposer   Account = "PROPOSER"
	Gate       Account = "GATE"
	Person     Account = "PERSON"
	Worker     Account = "WORKER"
	Supervisor Account = "SUPERVISOR"
	Monitor    Account = "MONITOR"
	Auditor    Account = "AUDITOR"
	Reader     Account = "READER"
)

// Accounts lists every account in the order of the configuration.
var Accounts = []Account{Core, Heads, Proposer, Gate, Person, Worker, Supervisor, Monitor, Auditor, Reader}

// Grant is what one role may do on the bus besides publishing its own kinds.
// In Pulls and Asks a "<pool>" stands for each pool that the actor serves.
type Grant struct {
	Role    events.Role
	Account Account
	// Carries are kinds that another actor has signed and this one brings.
	Carries []events.Kind
	// Pulls are the durables it takes deliveries from and acknowledges.
	Pulls []string
	// Reads stored events by direct get.
	Reads bool
	// ReadsState asks for the stream's state.
	ReadsState bool
	// Hears are subjects below bml: live events "bm.>", heartbeats "hb.>".
	Hears []string
	// Beats sends heartbeats under its own name.
	Beats bool
	// Asks are queries below bmq that it may send.
	Asks []string
	// Answers are queries below bmq that it serves, those with <pool> for its own
	// pools.
	Answers []string
	// WritesOutput stores output chunks under its own name.
	WritesOutput bool
	// ReadsOutput reads output chunks by direct get.
	ReadsOutput bool
	// WritesTexts keeps texts under its own name.
	WritesTexts bool
	// ReadsTexts reads kept texts by direct get.
	ReadsTexts bool
	// ErasesTexts deletes kept texts for good.
	ErasesTexts bool
	// WritesJobs keeps the key-value view.
	WritesJobs bool
	// ReadsJobs reads the key-value view.
	ReadsJobs bool
	// KeepsHeads reads and swaps the heads that may be signed.
	KeepsHeads bool
	// Pages through the stream with pull consumers that the desk makes.
	Pages bool
	// Discovers asks who serves ($SRV).
	Discovers bool
}

const (
	hearsEvents = events.PrefixStored + ".>"
	hearsBeats  = "hb.>"
)

var askAll = []string{"jobs.get", "jobs.list", "ready.*", "audit.status", "assess", "loop.status", "round.list", "round.get"}

// askEverything adds what the monitor answers, for those who are not it.
var askEverything = append(slices.Clone(askAll), "alerts.list")

// Table is the one table. The bus itself (role bus) is the administrator of
// CORE and has no line; root never logs in.
var Table = []Grant{
	{Role: events.RoleProposer, Account: Proposer, Reads: true, ReadsOutput: true, WritesTexts: true, ReadsTexts: true,
		Hears: []string{hearsEvents},
		Asks:  []string{"jobs.get", "jobs.list", "audit.status", "assess", "preview.*"}},
	{Role: events.RoleGate, Account: Gate, Reads: true,
		Pulls:   []string{"gate"},
		Hears:   []string{hearsEvents, hearsBeats},
		Asks:    []string{"jobs.get", "jobs.list", "ready.*", "audit.status"},
		Answers: []string{"assess"}},
	{Role: events.RolePerson, Account: Person, Reads: true, ReadsState: true, ReadsOutput: true, ReadsJobs: true, WritesTexts: true, ReadsTexts: true,
		Hears: []string{hearsEvents, hearsBeats},
		Asks:  askEverything, Discovers: true},
	{Role: events.RoleAdmin, Account: Person, Carries: []events.Kind{"trust.published"}},
	{Role: events.RoleWorker, Account: Worker, Reads: true, WritesOutput: true, Beats: true,
		Pulls:   []string{"resolve-<pool>", "run-<pool>"},
		Hears:   []string{hearsEvents, hearsBeats},
		Asks:    []string{"jobs.get", "jobs.list", "ready.<pool>", "audit.status"},
		Answers: []string{"preview.<pool>"}},
	{Role: events.RoleSupervisor, Account: Supervisor, Reads: true, WritesOutput: true, Beats: true,
		Hears:   []string{hearsEvents, hearsBeats},
		Asks:    []string{"jobs.get", "jobs.list", "audit.status"},
		Answers: []string{"loop.status", "round.list", "round.get"}},
	{Role: events.RoleMonitor, Account: Monitor, Reads: true, ReadsState: true, ReadsJobs: true,
		Hears: []string{hearsEvents, hearsBeats},
		Asks:  askAll, Discovers: true,
		Answers: []string{"alerts.list"}},
	{Role: events.RoleAuditor, Account: Auditor, Reads: true, ReadsState: true, ReadsOutput: true, ReadsJobs: true, WritesJobs: true, ReadsTexts: true, ErasesTexts: true, KeepsHeads: true,
		Hears:   []string{hearsEvents, hearsBeats},
		Answers: []string{"jobs.get", "jobs.list", "ready.*", "audit.status"}},
	{Role: events.RoleReader, Account: Reader, Reads: true, ReadsState: true, ReadsOutput: true, ReadsJobs: true, ReadsTexts: true,
		Hears: []string{hearsEvents, hearsBeats},
		Asks:  askEverything, Pages: true, Discovers: true},
}

// Of returns the role's line of the table.
func Of(role events.Role) (Grant, bool) {
	i := slices.IndexFunc(Table, func(g Grant) bool { return g.Role == role })
	if i < 0 {
		return Grant{}, false
	}
	return Table[i], true
}

// Durable is a queue on the audited stream from which a role takes work.
type Durable struct {
	Name    string
	Filters []string
	About   string
}

// Durables lists the queues of a site with these pools.
func Durables(pools []string) []Durable {
	job := func(pool, verb string) string {
		return events.PrefixStored + ".job." + pool + ".*." + verb + ".*"
	}
	ask := func(verb string) string { return events.PrefixStored + ".ask.*.*." + verb + ".*" }
	out := []Durable{{
		Name:    "gate",
		Filters: []string{job("*", "proposed"), job("*", "resolved"), job("*", "declined"), job("*", "assessed"), ask("cancel_requested"), ask("revoke_requested")},
		About:   "what the gate has to judge, and what is asked of it",
	}}
	for _, p := range pools {
		out = append(out,
			Durable{Name: "resolve-" + p, Filters: []string{job(p, "proposed")}, About: "proposals for the workers of pool " + p + " to resolve"},
			Durable{Name: "run-" + p, Filters: []string{job(p, "approved")}, About: "approved jobs for the workers of pool " + p + " to run"})
	}
	return out
}
