// Command banksman decides which commands autonomous agents may run, runs
// them, and proves what happened. It is every role's front door: 'banksman up'
// runs them all in one process, 'banksman help' lists the verbs.
package main

import (
	"os"

	"github.com/banksman/banksman/services/front"
)

func main() { os.Exit(front.Main()) }
