package supervisor

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/banksman/banksman/services/internal/proc"
)

func TestMain(m *testing.M) {
	proc.StewardMain()
	if path := os.Getenv(mortal); path != "" {
		fmt.Fprintln(os.Stderr, liveAndDie(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
