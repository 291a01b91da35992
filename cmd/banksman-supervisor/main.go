// Command banksman-supervisor keeps agents running in rounds, each in its
// project, and ends them when it is told to.
// It joins the bus that the site's configuration names and runs until a signal
// drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/supervisor"
)

func main() { os.Exit(host.Main("supervisor", nil, supervisor.New())) }
