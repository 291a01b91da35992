package front

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressOfTheBus(t *testing.T) {
	for _, c := range []struct {
		name  string
		in    address
		url   string
		hosts []string
		code  int
	}{
		{name: "loopback", in: address{listen: "127.0.0.1:4222"}, url: "tls://127.0.0.1:4222"},
		{name: "loopback, by name", in: address{listen: "localhost:4222"}, url: "tls://localhost:4222"},
		{name: "every address, by name", in: address{listen: "0.0.0.0:4222", hosts: []string{"bus", "bus.example.org"}},
			url: "tls://bus:4222", hosts: []string{"bus", "bus.example.org"}},
		{name: "one address", in: address{listen: "192.0.2.7:4222"}, url: "tls://192.0.2.7:4222", hosts: []string{"192.0.2.7"}},
		{name: "version 6", in: address{listen: "[::]:4222", hosts: []string{"2001:db8::1"}}, url: "tls://[2001:db8::1]:4222", hosts: []string{"2001:db8::1"}},
		{name: "every address, no name", in: address{listen: "0.0.0.0:4222"}, code: ExitUsage},
		{name: "every address, none written", in: address{listen: ":4222"}, code: ExitUsage},
		{name: "no port", in: address{listen: "127.0.0.1"}, code: ExitUsage},
		{name: "empty name", in: address{listen: "127.0.0.1:1", hosts: []string{""}}, code: ExitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, url, err := c.in.choose()
			if codeOf(err) != c.code {
				t.Fatalf("got %v, want exit code %d", err, c.code)
			}
			var e *exit
			if c.code != 0 {
				if !errors.As(err, &e) || !strings.Contains(err.Error(), "-") {
					t.Errorf("the error %v does not name its flag", err)
				}
				return
			}
			if url != c.url {
				t.Errorf("roles dial %s, want %s", url, c.url)
			}
			if diff := cmp.Diff(c.hosts, c.in.hosts); diff != "" {
				t.Errorf("names in the certificate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddressIsAFreePortByDefault(t *testing.T) {
	var a address
	listen, url, err := a.choose()
	if err != nil || !strings.HasPrefix(listen, "127.0.0.1:") || url != "tls://"+listen {
		t.Errorf("listen %q, dial %q, %v", listen, url, err)
	}
}
