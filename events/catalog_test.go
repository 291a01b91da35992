package events_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

// partStructs are exported structs that are a part of payloads, or no payload.
var partStructs = []string{
	"Actor", "Def", "Disk", "Event", "FaultName", "FileDigest", "Follows", "GrantScope", "ID", "Malformed", "Message", "Output",
	"Proposer", "Receipt", "Right", "Ruling", "Signature", "Stored", "Subject", "Text", "UnknownKind",
}

// futureRights are patterns of kinds that get their catalogue line with their
// first user. A row leaves this list when the catalogue holds a kind for it.
var futureRights = []string{
	"agent.*",
}

// kindPattern is noun.verb in lower-case words joined by "_".
var kindPattern = regexp.MustCompile(`^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$`)

// irregular are past participles that do not end in "ed".
var irregular = []string{"found", "given", "seen"}

func TestEveryPayloadStructIsCatalogued(t *testing.T) {
	catalogued := map[string]bool{}
	for _, d := range events.Catalog() {
		catalogued[d.Type.Name()] = true
	}
	structs := mustStructs(t)
	for name := range structs {
		exported := strings.ToUpper(name[:1]) == name[:1]
		if exported && !catalogued[name] && !slices.Contains(partStructs, name) {
			t.Errorf("struct %s has no catalogue line; add define[%s](...) on top of its file, or name it in partStructs", name, name)
		}
	}
	for _, name := range partStructs {
		if _, ok := structs[name]; !ok || catalogued[name] {
			t.Errorf("partStructs names %s, which is gone or is a payload", name)
		}
	}
}

func TestEveryMemberHasATagAndAComment(t *testing.T) {
	src := mustStructs(t)
	seen := map[reflect.Type]bool{}
	for _, d := range events.Catalog() {
		if f, ok := d.Type.FieldByName("Extra"); !ok || f.Tag != `json:",embed"` {
			t.Errorf("%s: end the struct with: Extra Extra `json:\",embed\"`", d.Type.Name())
		}
		checkMembers(t, d.Type, src, seen)
	}
}

var tagPattern = regexp.MustCompile(`^json:"[a-z][a-z0-9_]*(,omitempty|,omitzero)?"$`)

func checkMembers(t *testing.T, typ reflect.Type, src map[string]structSource, seen map[reflect.Type]bool) {
	t.Helper()
	for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || seen[typ] {
		return
	}
	seen[typ] = true
	if src[typ.Name()].doc == "" {
		t.Errorf("%s has no comment", typ.Name())
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Name == "Extra" {
			continue
		}
		if !tagPattern.MatchString(string(f.Tag)) {
			t.Errorf("%s.%s: tag %s must name the stored member", typ.Name(), f.Name, f.Tag)
		}
		if doc := src[typ.Name()].fields[f.Name].doc; !strings.HasSuffix(doc, ".") {
			t.Errorf("%s.%s: its comment %q is not a sentence; the schema shows it", typ.Name(), f.Name, doc)
		}
		checkMembers(t, f.Type, src, seen)
	}
}

func TestKindNames(t *testing.T) {
	versions := map[events.Kind]int{}
	types := map[reflect.Type]events.Kind{}
	for _, d := range events.Catalog() {
		if !kindPattern.MatchString(string(d.Kind)) || !isPast(d.Kind.Verb()) {
			t.Errorf("kind %q is not noun.past_participle", d.Kind)
		}
		if d.Version != versions[d.Kind]+1 {
			t.Errorf("kind %s: version %d follows %d; versions start at 1, each once, no holes", d.Kind, d.Version, versions[d.Kind])
		}
		versions[d.Kind] = d.Version
		if other, ok := types[d.Type]; ok {
			t.Errorf("%s is the payload of %s and of %s", d.Type.Name(), other, d.Kind)
		}
		types[d.Type] = d.Kind
		if !strings.Contains(d.When, " had ") || strings.HasSuffix(d.When, ".") {
			t.Errorf("kind %s: %q does not say what had happened by then", d.Kind, d.When)
		}
		if err := events.For(d.Kind, "default", "x", "a").Valid(); err != nil {
			t.Error(err)
		}
		if again, ok := events.Find(d.Kind, d.Version); !ok || again != d {
			t.Errorf("%s v%d is not found", d.Kind, d.Version)
		}
	}
}

func isPast(verb string) bool {
	return slices.ContainsFunc(strings.Split(verb, "_"), func(word string) bool {
		return strings.HasSuffix(word, "ed") || slices.Contains(irregular, word)
	})
}

func TestEveryKindHasAPublisher(t *testing.T) {
	for _, d := range events.Catalog() {
		if !slices.ContainsFunc(events.Roles, func(r events.Role) bool { return events.MayPublish(r, d.Kind) }) {
			t.Errorf("nobody may publish %s; add a row to Rights", d.Kind)
		}
	}
}

func TestEveryRightIsUsedOrNamedAsFuture(t *testing.T) {
	used := map[string]bool{}
	for _, r := range events.Rights {
		covers := slices.ContainsFunc(events.Catalog(), func(d events.Def) bool { return r.Covers(d.Kind) })
		future := slices.Contains(futureRights, r.Pattern)
		used[r.Pattern] = true
		if covers == future {
			t.Errorf("right %s of %s: catalogued %v, in futureRights %v; exactly one must hold", r.Pattern, r.Role, covers, future)
		}
		if !slices.Contains(events.Roles, r.Role) {
			t.Errorf("right %s belongs to role %q, which Roles does not list", r.Pattern, r.Role)
		}
	}
	for _, pattern := range futureRights {
		if !used[pattern] {
			t.Errorf("futureRights names %s, which no right grants", pattern)
		}
	}
}

// The rights that would hurt most if a row slipped in.
func TestWhoMayNotPublish(t *testing.T) {
	for kind, only := range map[events.Kind][]events.Role{
		"job.proposed":         {events.RoleProposer},
		"job.approved":         {events.RoleGate, events.RolePerson},
		"job.started":          {events.RoleWorker},
		"policy.published":     {events.RoleAdmin},
		"trust.published":      {events.RoleRoot},
		"gap.acknowledged":     {events.RoleAdmin},
		"audit.sealed":         {events.RoleAuditor},
		"loop.pause_requested": {events.RolePerson},
		"loop.paused":          {events.RoleSupervisor},
		"job.invented":         nil,
	} {
		for _, role := range events.Roles {
			if got := events.MayPublish(role, kind); got != slices.Contains(only, role) {
				t.Errorf("%s may publish %s: %v", role, kind, got)
			}
		}
	}
	if got := events.Publishes(events.RoleAuditor); !slices.Equal(got, []events.Kind{"audit.sealed", "audit.violation_found", "audit.gap_found", "audit.fault_found", "epoch.opened"}) {
		t.Errorf("the auditor publishes %v", got)
	}
	if got := events.Publishes(events.RoleReader); got != nil {
		t.Errorf("a reader publishes %v", got)
	}
}
