package grants

import (
	"slices"
	"strings"

	"github.com/banksman/banksman/events"
)

// service is a subject that one account serves and another may call.
type service struct {
	from    Account
	subject string // in the serving account
	local   string // in the calling account
	many    bool   // one call may be answered by several messages
}

// stream is a subject that one account emits and another may hear.
type stream struct {
	from    Account
	subject string
}

// rights is what a role, or one actor of it, may do, in subjects.
type rights struct {
	services  []service // what the account imports
	streams   []stream
	publish   []string
	deny      []string // publish, although a wildcard of publish covers it
	subscribe []string
	responds  bool
}

const anyToken = "*"

// actor narrows a role's rights to one actor; its zero value is every actor.
type actor struct {
	token string   // "" for any
	pools []string // of this actor; nil for any
}

func (a actor) name() string {
	if a.token == "" {
		return anyToken
	}
	return a.token
}

func (a actor) scopes(role events.Role) []string {
	if role != events.RoleWorker || len(a.pools) == 0 {
		return []string{anyToken}
	}
	return a.pools
}

// rightsOf spells out one line of the table. sitePools are the pools that have
// queues.
func rightsOf(g Grant, a actor, sitePools []string) rights {
	var r rights
	scopes := a.scopes(g.Role)
	for _, k := range events.Publishes(g.Role) {
		r.store(k, scopes, a.name())
	}
	for _, k := range g.Carries {
		r.store(k, []string{anyToken}, anyToken)
	}
	served := sitePools
	if g.Role == events.RoleWorker && len(a.pools) > 0 {
		served = a.pools
	}
	r.pull(g, served, sitePools)
	r.read(g)
	r.output(g, scopes, a.name())
	r.texts(g, a.name())
	r.talk(g, scopes, a.name())
	r.heads(g)
	if g.Pages {
		r.page(sitePools)
	}
	r.subscribe = append(r.subscribe, InboxPrefix+"."+a.name()+".>")
	return r
}

// store lets events of a kind be appended.
func (r *rights) store(k events.Kind, scopes []string, token string) {
	subject := func(scope, actor string) string {
		return strings.Join([]string{events.PrefixStored, k.Family(), scope, anyToken, k.Verb(), actor}, ".")
	}
	all := subject(anyToken, anyToken)
	r.services = append(r.services, service{from: Core, subject: all, local: all})
	for _, s := range scopes {
		r.publish = append(r.publish, subject(s, token))
	}
}

// call lets a subject of CORE be called under the same or another name.
func (r *rights) call(subject, local string, many bool) {
	r.services = append(r.services, service{from: Core, subject: subject, local: local, many: many})
	r.publish = append(r.publish, local)
}

// api lets one JetStream call be made.
func (r *rights) api(call string, many bool) {
	r.call("$JS.API."+call, APIPrefix+"."+call, many)
}

// pull lets deliveries of durables be fetched and acknowledged, in the form of
// acknowledgement subjects that servers use today and in the next one.
func (r *rights) pull(g Grant, served, sitePools []string) {
	for _, pattern := range g.Pulls {
		for _, name := range expand(pattern, served) {
			if !slices.ContainsFunc(Durables(sitePools), func(d Durable) bool { return d.Name == name }) {
				continue
			}
			r.api("CONSUMER.MSG.NEXT."+Stream+"."+name, true)
			for _, ack := range []string{"$JS.ACK." + Stream + "." + name + ".>", "$JS.ACK.*.*." + Stream + "." + name + ".>"} {
				r.call(ack, ack, false)
			}
		}
	}
}

func (r *rights) read(g Grant) {
	if g.Reads {
		r.api("DIRECT.GET."+Stream, true)
	}
	if g.ReadsOutput {
		r.api("DIRECT.GET."+OutputStream, true)
	}
	if g.ReadsState {
		r.api("STREAM.INFO."+Stream, false)
	}
	if g.ReadsJobs {
		r.api("STREAM.INFO."+JobsStream, false)
		r.api("DIRECT.GET."+JobsStream+".>", false)
	}
	if g.WritesJobs {
		jobs := "$KV." + JobsBucket + ".>"
		r.call(jobs, jobs, false)
	}
}

// output lets chunks be stored and one's own be read back.
func (r *rights) output(g Grant, scopes []string, token string) {
	if !g.WritesOutput {
		return
	}
	all := events.PrefixOutput + ".*.*.*.*.*"
	again := "DIRECT.GET." + OutputStream + "."
	r.services = append(r.services,
		service{from: Core, subject: all, local: all},
		service{from: Core, subject: "$JS.API." + again + all, local: APIPrefix + "." + again + all})
	for _, s := range scopes {
		own := events.PrefixOutput + "." + s + ".*.*.*." + token
		r.publish = append(r.publish, own, APIPrefix+"."+again+own)
	}
}

// texts lets words of people be kept, read and erased.
func (r *rights) texts(g Grant, token string) {
	if g.WritesTexts {
		all := events.PrefixText + ".*.*"
		r.services = append(r.services, service{from: Core, subject: all, local: all})
		r.publish = append(r.publish, events.PrefixText+".*."+token)
	}
	if g.ReadsTexts {
		r.api("DIRECT.GET."+TextStream, true)
	}
	if g.ErasesTexts {
		r.api("STREAM.MSG.DELETE."+TextStream, false)
	}
}

// heads lets the heads of logs be read and swapped.
func (r *rights) heads(g Grant) {
	if !g.KeepsHeads {
		return
	}
	values := "$KV." + HeadsBucket + ".>"
	get := "DIRECT.GET." + HeadsStream + "."
	r.services = append(r.services,
		service{from: Heads, subject: values, local: values},
		service{from: Heads, subject: "$JS.API." + get + values, local: HeadsPrefix + "." + get + values})
	r.publish = append(r.publish, values, HeadsPrefix+"."+get+values)
}

// makesHeads is what the bus imports to make the bucket of heads and to look at its
// settings.
func makesHeads() []service {
	var out []service
	for _, call := range []string{"STREAM.CREATE.", "STREAM.INFO."} {
		out = append(out, service{from: Heads, subject: "$JS.API." + call + HeadsStream, local: HeadsPrefix + "." + call + HeadsStream})
	}
	return out
}

// talk is everything that is not stored: live copies, heartbeats, questions.
func (r *rights) talk(g Grant, scopes []string, token string) {
	for _, h := range g.Hears {
		subject := events.PrefixLive + "." + h
		for _, from := range emitters(h) {
			// Who beats hears its own peers only: two accounts that import the
			// same subject from each other would be a cycle.
			if from != g.Account && !(g.Beats && h == hearsBeats) {
				r.streams = append(r.streams, stream{from: from, subject: subject})
			}
		}
	}
	// Whoever hears both hears bml.> as well, because the server compares what
	// is asked for with each line by itself.
	switch len(g.Hears) {
	case 1:
		r.subscribe = append(r.subscribe, events.PrefixLive+"."+g.Hears[0])
	case 2:
		r.subscribe = append(r.subscribe, events.PrefixLive+".>")
	}
	if g.Beats {
		for _, s := range scopes {
			r.publish = append(r.publish, HeartbeatPrefix+"."+s+"."+token+".*")
		}
	}
	for _, q := range g.Asks {
		for _, name := range expand(q, scopes) {
			r.publish = append(r.publish, events.PrefixQuery+"."+name)
		}
		for _, name := range expand(q, []string{anyToken}) {
			r.services = append(r.services, queryServices(name, g.Account)...)
		}
	}
	for _, q := range g.Answers {
		for _, name := range expand(q, scopes) {
			r.subscribe = append(r.subscribe, events.PrefixQuery+"."+name)
		}
		r.responds = true
	}
	if r.responds {
		r.subscribe = append(r.subscribe, "$SRV.>")
	}
	if g.Discovers {
		r.publish = append(r.publish, "$SRV.>")
		for _, from := range answerers("") {
			if from == g.Account {
				continue
			}
			r.services = append(r.services, service{from: from, subject: "$SRV.>", local: "$SRV.>", many: true})
		}
	}
}

// page lets consumers be made at the desk and pulled from, except the queues
// of the roles. What it acknowledges goes nowhere: its consumers need none.
func (r *rights) page(sitePools []string) {
	for _, call := range []string{"CONSUMER.CREATE." + Stream + ".>", "CONSUMER.DELETE." + Stream + ".*"} {
		r.call(DeskPrefix+"."+call, APIPrefix+"."+call, false)
	}
	for _, call := range []string{"STREAM.NAMES", "STREAM.LIST"} {
		r.api(call, false)
	}
	next := "CONSUMER.MSG.NEXT." + Stream + "."
	r.api(next+anyToken, true)
	for _, d := range Durables(sitePools) {
		r.deny = append(r.deny, APIPrefix+"."+next+d.Name)
	}
	r.publish = append(r.publish, "$JS.ACK."+Stream+".>", "$JS.ACK.*.*."+Stream+".>")
}

// expand replaces "<pool>" by each pool.
func expand(pattern string, pools []string) []string {
	if !strings.Contains(pattern, "<pool>") {
		return []string{pattern}
	}
	var out []string
	for _, p := range pools {
		out = append(out, strings.ReplaceAll(pattern, "<pool>", p))
	}
	return out
}

// emitters are the accounts in which a live subject comes into being.
func emitters(hears string) []Account {
	if hears == hearsEvents {
		return []Account{Core}
	}
	var out []Account
	for _, g := range Table {
		if g.Beats {
			out = append(out, g.Account)
		}
	}
	return out
}

// answerers are the accounts that serve a query, or any query for "".
func answerers(query string) []Account {
	var out []Account
	for _, g := range Table {
		serves := func(q string) bool { return query == "" || slices.Contains(expand(q, []string{anyToken}), query) }
		if slices.ContainsFunc(g.Answers, serves) {
			out = append(out, g.Account)
		}
	}
	return out
}

func queryServices(query string, caller Account) []service {
	var out []service
	for _, from := range answerers(query) {
		if from != caller {
			subject := events.PrefixQuery + "." + query
			out = append(out, service{from: from, subject: subject, local: subject})
		}
	}
	return out
}
