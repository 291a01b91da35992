// Command banksman-proposer is the door for agents: it takes commands from whoever holds a token and
// stores them as proposals.
// It joins the bus that the site's configuration names and runs until a signal
// drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/proposer"
)

func main() { os.Exit(host.Main("proposer", nil, proposer.New())) }
