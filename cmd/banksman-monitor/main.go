// Command banksman-monitor watches every event, raises alerts, and orders a project to stop when
// going on does harm.
// It joins the bus that the site's configuration names and runs until a signal
// drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/monitor"
)

func main() { os.Exit(host.Main("monitor", nil, monitor.New())) }
