package events_test

import (
	"testing"

	"github.com/banksman/banksman/events"
)

func TestActorOfATrustFile(t *testing.T) {
	file := &events.TrustPublished{Actors: []events.Actor{
		{Actor: "p7k2", Roles: []events.Role{events.RolePerson, events.RoleAdmin}},
		{Actor: "reader", Roles: []events.Role{events.RoleReader}},
	}}
	person, ok := file.Find("p7k2")
	if !ok || !person.Has(events.RoleAdmin) || person.Has(events.RoleGate) {
		t.Errorf("found %+v, %v", person, ok)
	}
	if !person.MayPublish("job.approved") || !person.MayPublish("policy.published") || person.MayPublish("job.started") {
		t.Error("a person with two roles has the rights of both and no others")
	}
	if _, ok := file.Find("p7k"); ok {
		t.Error("a prefix is an actor")
	}
	if (events.Actor{}).MayPublish("job.denied") {
		t.Error("an actor without roles may publish")
	}
}
