// Command banksman-auditor folds the stream into a log that an outsider can verify, and answers
// what jobs there are.
// It joins the bus that the site's configuration names and runs until a signal
// drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/host"
)

func main() { os.Exit(host.Main("auditor", nil, auditor.New())) }
