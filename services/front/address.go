package front

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"
)

// address is where a new site's bus listens, and by which names it is reached.
type address struct {
	listen string
	hosts  []string
}

func (f *address) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", "", "address:port of the bus (default: a free port on loopback)")
	cmd.Flags().StringSliceVar(&f.hosts, "bus-host", nil, "name or address in the bus certificate; roles dial the first one. Repeat for more")
}

// choose settles the address to listen on and the URL that roles dial.
func (f *address) choose() (listen, url string, err error) {
	if f.listen == "" {
		if f.listen, err = freePort(); err != nil {
			return "", "", err
		}
	}
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil || port == "" {
		return "", "", usage("such as --listen 127.0.0.1:4222", "--listen %q: want address:port", f.listen)
	}
	for _, h := range f.hosts {
		if h == "" {
			return "", "", usage("such as --bus-host bus.example.org", "--bus-host: a name is empty")
		}
	}
	if len(f.hosts) > 0 {
		return f.listen, "tls://" + net.JoinHostPort(f.hosts[0], port), nil
	}
	a, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && a.IsUnspecified():
		return "", "", usage("name what roles dial, such as --bus-host bus.example.org", "--listen %s: it names every address of the machine, and roles need one", f.listen)
	case host != "localhost" && (err != nil || !a.IsLoopback()):
		f.hosts = []string{host} // the certificate is good for loopback anyway
	}
	return f.listen, fmt.Sprintf("tls://%s", f.listen), nil
}
