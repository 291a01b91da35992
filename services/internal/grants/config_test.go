package grants

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

const (
	keyA = "UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	keyB = "UBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
)

func trustOf(actors ...events.Actor) events.TrustPublished {
	return events.TrustPublished{Version: 1, Origin: "site", Actors: actors}
}

func TestUnfitTrustFiles(t *testing.T) {
	for name, actors := range map[string][]events.Actor{
		"two accounts":   {{Actor: "a", Login: keyA, Roles: []events.Role{events.RoleWorker, events.RoleGate}}},
		"bus and worker": {{Actor: "a", Login: keyA, Roles: []events.Role{events.RoleBus, events.RoleWorker}}},
		"no role":        {{Actor: "a", Login: keyA}},
		"root logs in":   {{Actor: "root", Login: keyA, Roles: []events.Role{events.RoleRoot}}},
		"no user key":    {{Actor: "a", Login: "AAAA", Roles: []events.Role{events.RoleGate}}},
		"injected key":   {{Actor: "a", Login: keyA + " }", Roles: []events.Role{events.RoleGate}}},
		"injected name":  {{Actor: "a\n}", Login: keyA, Roles: []events.Role{events.RoleGate}}},
		"wildcard name":  {{Actor: "*", Login: keyA, Roles: []events.Role{events.RoleGate}}},
		"injected pool":  {{Actor: "a", Login: keyA, Roles: []events.Role{events.RoleWorker}, Pools: []string{">"}}},
		"shared key": {
			{Actor: "a", Login: keyA, Roles: []events.Role{events.RoleGate}},
			{Actor: "b", Login: keyA, Roles: []events.Role{events.RoleWorker}},
		},
	} {
		var unfit *Unfit
		if _, err := Config(trustOf(actors...), []string{"default"}, ""); !errors.As(err, &unfit) {
			t.Errorf("%s: %v, want *Unfit", name, err)
		}
	}
	for _, pools := range [][]string{{"*"}, {"default", "default"}, {"a.b"}, {""}} {
		if _, err := Config(trustOf(), pools, ""); err == nil {
			t.Errorf("pools %q were taken", pools)
		}
	}
}

func TestAPersonMayHoldSeveralRolesOfOneAccount(t *testing.T) {
	a := events.Actor{Actor: "p7k2", Login: keyB, Roles: []events.Role{events.RolePerson, events.RoleAdmin, events.RoleReader}}
	account, logsIn, err := AccountOf(a)
	if err != nil || !logsIn || account != Person {
		t.Fatalf("account %s, %t, %v", account, logsIn, err)
	}
	r := ActorRights(a, []string{"default"})
	for _, want := range []string{"bm.job.*.*.approved.p7k2", "bm.policy.*.*.published.p7k2", "bm.trust.*.*.published.*"} {
		if !slices.Contains(r.Publish, want) {
			t.Errorf("an admin may not publish %s", want)
		}
	}
}

// TestEveryPublishingRoleHasALine keeps the table whole when a role is added.
func TestEveryPublishingRoleHasALine(t *testing.T) {
	for _, role := range events.Roles {
		if role == events.RoleBus || role == events.RoleRoot {
			continue
		}
		if _, ok := Of(role); !ok {
			t.Errorf("role %s has no line in the table", role)
		}
	}
}

// TestNoRoleReachesTheAPIInPlace: whatever a role may publish stays within the
// subjects that its account imports.
func TestNoRoleReachesTheAPIInPlace(t *testing.T) {
	for _, g := range Table {
		r := rightsOf(g, actor{token: "someone"}, []string{"default"})
		for _, p := range r.publish {
			if strings.HasPrefix(p, "$JS.API") || p == ">" || strings.HasPrefix(p, "*") || strings.HasPrefix(p, DeskPrefix) {
				t.Errorf("role %s publishes %s", g.Role, p)
			}
			own := !g.Pages || !strings.HasPrefix(p, "$JS.ACK.")
			heartbeat := strings.HasPrefix(p, HeartbeatPrefix)
			imported := slices.ContainsFunc(r.services, func(s service) bool { return covers(s.local, p) })
			if own && !heartbeat && !imported {
				t.Errorf("role %s publishes %s, which its account does not import", g.Role, p)
			}
		}
	}
}

// covers says whether every subject of the narrow pattern is one of the wide.
func covers(wide, narrow string) bool {
	w, n := strings.Split(wide, "."), strings.Split(narrow, ".")
	for i, token := range w {
		if token == ">" {
			return len(n) > i
		}
		if i >= len(n) || (token != "*" && token != n[i]) {
			return false
		}
	}
	return len(w) == len(n)
}

func TestStaticIsTheSameForEveryTrustFile(t *testing.T) {
	text, err := StandAlone([]string{"default", "gpu"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Accounts {
		if !strings.Contains(text, "include \"actors/"+FileName(a)+"\"") {
			t.Errorf("account %s includes no users", a)
		}
	}
	if strings.Contains(text, "nkey") {
		t.Error("the static configuration holds a user")
	}
}
