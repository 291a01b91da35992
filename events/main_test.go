package events_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain brings the generated files up to date before the tests compare
// them, so that the generator and the check are one program.
func TestMain(m *testing.M) {
	update := flag.Bool("update", false, "write schemas, missing golden files and new lines of released.sum")
	flag.Parse()
	if *update {
		for _, write := range []func() error{writeSchemas, writeMissingGoldens, appendReleased} {
			if err := write(); err != nil {
				fmt.Fprintln(os.Stderr, "update generated files:", err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}
