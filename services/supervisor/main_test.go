package supervisor

import (
	"os"
	"testing"

	"github.com/banksman/banksman/services/internal/proc"
)

func TestMain(m *testing.M) {
	proc.StewardMain()
	os.Exit(m.Run())
}
