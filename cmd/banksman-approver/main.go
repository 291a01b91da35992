// Command banksman-approver is the gate: it applies the policy in force and signs what policy alone
// decides.
// It joins the bus that the site's configuration names and runs until a signal
// drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/approver"
	"github.com/banksman/banksman/services/host"
)

func main() { os.Exit(host.Main("approver", nil, approver.New())) }
