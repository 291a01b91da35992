// Command banksman-bus hosts the site's bus: the embedded message server with
// the roles' permissions. It owns the store and runs until a signal drains it.
package main

import (
	"os"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/host/embed"
)

func main() { os.Exit(host.Main("bus", embed.Start)) }
