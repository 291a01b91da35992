// Command banksman-worker runs exactly what was decided, in its pool.
// It joins the bus that the site's configuration names and runs until a signal
// drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/worker"
)

func main() { os.Exit(host.Main("worker", nil, worker.New())) }
