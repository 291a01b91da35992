package loops

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// ParseRound takes a round's id apart.
func ParseRound(id string) (project string, number int, ok bool) {
	cut := strings.LastIndexByte(id, '-')
	if cut < 1 {
		return "", 0, false
	}
	number, err := strconv.Atoi(id[cut+1:])
	if err != nil || number < 1 || events.RoundID(id[:cut], number) != id || events.CheckName("project", id[:cut]) != nil {
		return "", 0, false
	}
	return id[:cut], number, true
}

// Refusal is why something cannot be said of a project now.
type Refusal struct {
	Code string // stable, see the constants
	Why  string
	Next string // what to do instead, empty when nothing
}

func (r *Refusal) Error() string {
	if r.Next == "" {
		return r.Why
	}
	return r.Why + "; " + r.Next
}

// Codes of refusals.
const (
	CodeUnknown = "unknown_project"
	CodeAlready = "already"
	CodeMode    = "bad_mode"
)

// Saying is an event to append about a project.
type Saying struct {
	Kind    events.Kind
	Expect  uint64
	Payload any
}

// Subject is where an actor says it.
func (s Saying) Subject(project, actor string) events.Subject {
	return events.For(s.Kind, project, project, actor)
}

func known(p loop.Project) error {
	if p.Loop.Status == loop.None && p.Stop.LastSeq == 0 {
		return &Refusal{CodeUnknown, fmt.Sprintf("no supervisor has ever claimed project %q", p.Name),
			"name it in [projects." + p.Name + "] and start the supervisor"}
	}
	return nil
}

// Order makes a stop order. Alert is the id of the alert behind it, empty for
// a person's.
func Order(p loop.Project, mode, reason, alert string) (Saying, error) {
	if err := known(p); err != nil {
		return Saying{}, err
	}
	if mode != events.StopDrain && mode != events.StopKill {
		return Saying{}, &Refusal{CodeMode, fmt.Sprintf("a stop order cannot %q", mode), "use drain or kill"}
	}
	harder := mode == events.StopKill && p.Stop.Wants(events.StopDrain) &&
		(p.Stop.Status == loop.Ordered || p.Stop.Status == loop.Seen)
	if p.Stop.InForce() && !harder {
		return Saying{}, &Refusal{CodeAlready, fmt.Sprintf("project %s was ordered to %s by %s: %s; the order is %s",
			p.Name, p.Stop.Order.Mode, p.Stop.By, p.Stop.Order.Reason, p.Stop.Status), ""}
	}
	return Saying{"stop.ordered", p.Stop.LastSeq, &events.StopOrdered{Mode: mode, Reason: reason, Alert: alert}}, nil
}

// Lift makes the end of the order in force.
func Lift(p loop.Project, reason string) (Saying, error) {
	if !p.Stop.InForce() {
		return Saying{}, &Refusal{CodeAlready, "no stop order is in force for project " + p.Name, ""}
	}
	return Saying{"stop.lifted", p.Stop.LastSeq, &events.StopLifted{Ordered: p.Stop.Seq, Reason: reason}}, nil
}

// Restart makes the request that a halted loop begins anew.
func Restart(p loop.Project, reason string) (Saying, error) {
	if err := known(p); err != nil {
		return Saying{}, err
	}
	if p.Loop.Status != loop.Halted {
		return Saying{}, &Refusal{CodeAlready, "the loop of project " + p.Name + " has not halted", ""}
	}
	return Saying{"loop.start_requested", p.Loop.LastSeq, &events.LoopStartRequested{Halted: p.Loop.HaltedSeq, Reason: reason}}, nil
}

// Start makes whatever lets the project run again: the end of a stop order,
// the answer to a halt, or both.
func Start(p loop.Project, reason string) ([]Saying, error) {
	if err := known(p); err != nil {
		return nil, err
	}
	var out []Saying
	if s, err := Lift(p, reason); err == nil {
		out = append(out, s)
	}
	if s, err := Restart(p, reason); err == nil {
		out = append(out, s)
	}
	if len(out) == 0 {
		why := fmt.Sprintf("project %s is neither stopped nor halted", p.Name)
		if p.Loop.Holder.Seq == 0 {
			return nil, &Refusal{CodeAlready, why + ", but no supervisor holds it", "start the supervisor that has it"}
		}
		return nil, &Refusal{CodeAlready, why + "; " + p.Loop.Holder.Actor + " runs it", ""}
	}
	return out, nil
}
