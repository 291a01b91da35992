package grants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// export is one service or stream that an account offers, and to whom.
type export struct {
	kind    string // "service" or "stream"
	subject string
	many    bool
	to      []Account
}

// imports joins what the roles of an account import, each once.
func imports(account Account, pools []string) ([]service, []stream) {
	var services []service
	var streams []stream
	if account == Core {
		services = makesHeads()
	}
	for _, g := range Table {
		if g.Account != account {
			continue
		}
		r := rightsOf(g, actor{}, pools)
		services = append(services, r.services...)
		streams = append(streams, r.streams...)
	}
	slices.SortFunc(services, func(a, b service) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.local, b.local))
	})
	slices.SortFunc(streams, func(a, b stream) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.subject, b.subject))
	})
	return slices.Compact(services), slices.Compact(streams)
}

// exports turns the imports of all accounts round.
func exports(account Account, pools []string) []export {
	byKey := map[string]*export{}
	add := func(kind, subject string, many bool, to Account) {
		e := byKey[kind+subject]
		if e == nil {
			e = &export{kind: kind, subject: subject}
			byKey[kind+subject] = e
		}
		e.many = e.many || many
		e.to = append(e.to, to)
	}
	for _, to := range Accounts {
		services, streams := imports(to, pools)
		for _, s := range services {
			if s.from == account {
				add("service", s.subject, s.many, to)
			}
		}
		for _, s := range streams {
			if s.from == account {
				add("stream", s.subject, false, to)
			}
		}
	}
	var out []export
	for _, e := range byKey {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b export) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.subject, b.subject))
	})
	return out
}

// accounts renders the block; users renders the users of one account.
func accounts(pools []string, users func(Account) string) string {
	var b strings.Builder
	b.WriteString("accounts {\n")
	for _, a := range Accounts {
		fmt.Fprintf(&b, "  %s {\n", a)
		if a == Core || a == Heads {
			b.WriteString("    jetstream: enabled\n")
		}
		b.WriteString(users(a))
		writeExports(&b, exports(a, pools))
		services, streams := imports(a, pools)
		writeImports(&b, services, streams)
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func writeExports(b *strings.Builder, exports []export) {
	if len(exports) == 0 {
		return
	}
	b.WriteString("    exports: [\n")
	for _, e := range exports {
		fmt.Fprintf(b, "      { %s: %q", e.kind, e.subject)
		if e.many {
			b.WriteString(", response_type: stream")
		}
		names := make([]string, len(e.to))
		for i, a := range e.to {
			names[i] = string(a)
		}
		fmt.Fprintf(b, ", accounts: [%s] }\n", strings.Join(names, ", "))
	}
	b.WriteString("    ]\n")
}

func writeImports(b *strings.Builder, services []service, streams []stream) {
	if len(services)+len(streams) == 0 {
		return
	}
	b.WriteString("    imports: [\n")
	for _, s := range services {
		fmt.Fprintf(b, "      { service: { account: %s, subject: %q }", s.from, s.subject)
		if s.local != s.subject {
			fmt.Fprintf(b, ", to: %q", s.local)
		}
		b.WriteString(" }\n")
	}
	for _, s := range streams {
		fmt.Fprintf(b, "      { stream: { account: %s, subject: %q } }\n", s.from, s.subject)
	}
	b.WriteString("    ]\n")
}
