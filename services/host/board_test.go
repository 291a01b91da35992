package host

import (
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/keys"
)

func TestBoard(t *testing.T) {
	called := 0
	var b *board
	b = newBoard([]string{"bus", "worker"}, func() {
		called++
		b.status() // may be asked from here
	})
	if s := b.status(); s.Ready || len(s.Roles) != 2 || s.Roles[0].Reason != "starting" {
		t.Errorf("%+v", s)
	}
	b.set("bus", true, "")
	b.set("nobody", false, "x")
	if s := b.status(); s.Ready || called != 0 || !b.alive() {
		t.Errorf("%+v, called %d times", s, called)
	}
	b.set("worker", true, "")
	since := b.status().Roles[1].Since
	b.set("worker", true, "")
	if s := b.status(); !s.Ready || called != 1 || s.Roles[1].Since != since {
		t.Errorf("%+v, called %d times", s, called)
	}
	b.set("worker", true, "a warning") // ready all the same
	if s := b.status(); !s.Ready || s.Roles[1].Reason != "a warning" {
		t.Errorf("%+v", s)
	}
	b.set("bus", false, "ill")
	b.set("bus", true, "")
	if s := b.status(); !s.Ready || called != 1 {
		t.Errorf("%+v, called %d times", s, called)
	}
}

func TestSiteConfig(t *testing.T) {
	signer, err := keys.GenerateSigner()
	if err != nil {
		t.Fatal(err)
	}
	good := SiteConfig{Origin: "site-x", RootKey: string(signer.Public()), BusURL: "tls://a:4222,tls://b:4222"}
	for want, spoil := range map[string]func(*SiteConfig){
		"":         func(*SiteConfig) {},
		"origin":   func(c *SiteConfig) { c.Origin = "Site X" },
		"root_key": func(c *SiteConfig) { c.RootKey = c.RootKey[:20] },
		"bus_url":  func(c *SiteConfig) { c.BusURL = "127.0.0.1:4222" },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it about %q", err, want)
		}
	}
}

func TestBusConfig(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*BusConfig)
		want  string
	}{
		"as it is":     {func(*BusConfig) {}, ""},
		"no port":      {func(c *BusConfig) { c.Listen = "127.0.0.1" }, "listen"},
		"named port":   {func(c *BusConfig) { c.Listen = "127.0.0.1:nats" }, "listen"},
		"too high":     {func(c *BusConfig) { c.Listen = "127.0.0.1:70000" }, "listen"},
		"IPv6":         {func(c *BusConfig) { c.Listen = "[::1]:4222" }, ""},
		"no pool":      {func(c *BusConfig) { c.Pools = nil }, "pools"},
		"no pool name": {func(c *BusConfig) { c.Pools = []string{"A"} }, "pools"},
		"pool twice":   {func(c *BusConfig) { c.Pools = []string{"a", "a"} }, "twice"},
		"small":        {func(c *BusConfig) { c.MaxBytes = 1 << 20 }, "max_bytes"},
		"small output": {func(c *BusConfig) { c.Output = 1 << 20 }, "output_max_bytes"},
	} {
		d := DefaultBus()
		c.spoil(&d)
		if err := d.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it about %q", what, err, c.want)
		}
	}
}
