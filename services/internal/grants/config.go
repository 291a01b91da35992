package grants

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/banksman/banksman/events"
)

// Unfit says why a trust file cannot become accounts of the bus.
type Unfit struct {
	Actor string
	Why   string
	Next  string
}

func (e *Unfit) Error() string {
	return fmt.Sprintf("make the bus accounts: actor %q %s; %s", e.Actor, e.Why, e.Next)
}

var userKey = regexp.MustCompile(`^U[A-Z2-7]{55}$`)

// AccountOf is the account in which an actor logs in. Actors that only sign,
// such as root, have none.
func AccountOf(a events.Actor) (account Account, logsIn bool, err error) {
	if a.Login == "" {
		return "", false, nil
	}
	var found []Account
	for _, r := range a.Roles {
		acc := Core
		if g, ok := Of(r); ok {
			acc = g.Account
		} else if r != events.RoleBus {
			continue
		}
		if !slices.Contains(found, acc) {
			found = append(found, acc)
		}
	}
	// A person reads everything a reader does, apart from paging.
	if i := slices.Index(found, Reader); i >= 0 && slices.Contains(found, Person) {
		found = slices.Delete(found, i, i+1)
	}
	switch len(found) {
	case 0:
		return "", false, &Unfit{a.Actor, "has a log-in key but no role that logs in", "give it a role or take the key away"}
	case 1:
		return found[0], true, nil
	}
	return "", false, &Unfit{a.Actor, fmt.Sprintf("has roles of several accounts: %v", found),
		"give each role an actor of its own, because a log-in key belongs to one account"}
}

// Users renders the users of each account.
func Users(t events.TrustPublished, pools []string) (map[Account]string, error) {
	if err := checkPools(pools); err != nil {
		return nil, err
	}
	var seen []string
	out := map[Account]string{}
	for _, a := range t.Actors {
		if err := events.CheckName("actor", a.Actor); err != nil {
			return nil, &Unfit{a.Actor, "has no usable name: " + err.Error(), "rename it"}
		}
		account, logsIn, err := AccountOf(a)
		if err != nil {
			return nil, err
		}
		if !logsIn {
			continue
		}
		logins := loginsOf(a)
		for _, key := range logins {
			if !userKey.MatchString(key) {
				return nil, &Unfit{a.Actor, "has a log-in key that is no NATS user key", "publish a trust file with the key that starts with U"}
			}
			if slices.Contains(seen, key) {
				return nil, &Unfit{a.Actor, "shares its log-in key with another actor", "make a key for each"}
			}
			seen = append(seen, key)
		}
		for _, p := range a.Pools {
			if err := events.CheckName("pool", p); err != nil {
				return nil, &Unfit{a.Actor, err.Error(), "rename the pool"}
			}
		}
		for _, key := range logins {
			out[account] += user(a, key, account, pools)
		}
	}
	return out, nil
}

// loginsOf are the keys that open the door for an actor: two while it rotates.
func loginsOf(a events.Actor) []string {
	if a.OldLogin == "" {
		return []string{a.Login}
	}
	return []string{a.Login, a.OldLogin}
}

func checkPools(pools []string) error {
	for i, p := range pools {
		if err := events.CheckName("pool", p); err != nil {
			return fmt.Errorf("make the bus accounts: %w", err)
		}
		if slices.Contains(pools[:i], p) {
			return fmt.Errorf("make the bus accounts: pool %q is listed twice; list it once", p)
		}
	}
	return nil
}

// user renders one user. The bus is the administrator of CORE.
func user(a events.Actor, login string, account Account, pools []string) string {
	if account == Core {
		return Administrator(login)
	}
	r := ActorRights(a, pools)
	var b strings.Builder
	fmt.Fprintf(&b, "      { nkey: %s, permissions: { # %s\n", login, a.Actor)
	b.WriteString("        publish: { allow: " + list(r.Publish))
	if len(r.Deny) > 0 {
		b.WriteString(", deny: " + list(r.Deny))
	}
	b.WriteString(" }\n        subscribe: { allow: " + list(r.Subscribe) + " }\n")
	if r.Responds {
		b.WriteString("        allow_responses: { max: 1, expires: \"2m\" }\n")
	}
	b.WriteString("      } }\n")
	return b.String()
}

// Administrator renders a user of CORE without limits, for the bus itself.
func Administrator(login string) string { return "      { nkey: " + login + " } # bus\n" }

// Rights is what one actor may do, in subjects as it uses them itself.
type Rights struct {
	Publish   []string
	Deny      []string // publish, although Publish covers it
	Subscribe []string
	Responds  bool
}

// ActorRights joins the rights of an actor's roles.
func ActorRights(a events.Actor, pools []string) Rights {
	var out Rights
	for _, role := range a.Roles {
		g, ok := Of(role)
		if !ok || (role == events.RoleReader && a.Has(events.RolePerson)) {
			continue
		}
		r := rightsOf(g, actor{a.Actor, a.Pools}, pools)
		out.Publish = append(out.Publish, r.publish...)
		out.Deny = append(out.Deny, r.deny...)
		out.Subscribe = append(out.Subscribe, r.subscribe...)
		out.Responds = out.Responds || r.responds
	}
	out.Publish, out.Deny, out.Subscribe = sorted(out.Publish), sorted(out.Deny), sorted(out.Subscribe)
	return out
}

// Config renders the accounts of a site: its roles, their imports and exports,
// and the actors of the trust file. Extra are users of CORE that are in no
// trust file, see [Administrator].
func Config(t events.TrustPublished, pools []string, extra string) (string, error) {
	users, err := Users(t, pools)
	if err != nil {
		return "", err
	}
	users[Core] = extra + users[Core]
	return accounts(pools, func(a Account) string {
		return "    users: [\n" + users[a] + "    ]\n"
	}), nil
}

// Static renders the same accounts for a stand-alone server. Each account
// includes its users from actors/<account>.conf, which [UsersFile] renders, so
// that actors change without touching this file.
func Static(pools []string) (string, error) {
	if err := checkPools(pools); err != nil {
		return "", err
	}
	return accounts(pools, func(a Account) string {
		return "    include \"actors/" + FileName(a) + "\"\n"
	}), nil
}

// FileName is the file below actors/ that holds an account's users.
func FileName(a Account) string { return strings.ToLower(string(a)) + ".conf" }

// UsersFile wraps one account's users, as rendered by [Users], for an include.
func UsersFile(users string) string { return "users: [\n" + users + "]\n" }

func list(subjects []string) string {
	quoted := make([]string, len(subjects))
	for i, s := range subjects {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}
