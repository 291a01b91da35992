package grants_test

import (
	"flag"
	"os"
	"testing"

	"github.com/banksman/banksman/services/internal/grants"
)

var update = flag.Bool("update", false, "write deploy/nats anew")

// deployed is the shipped configuration of a stand-alone server.
const deployed = "../../../deploy/nats/banksman.conf"

// The shipped file is the table, so the two cannot drift.
func TestDeployedConfiguration(t *testing.T) {
	want, err := grants.StandAlone([]string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll("../../../deploy/nats", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(deployed, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(deployed)
	if err != nil || string(got) != want {
		t.Errorf("deploy/nats/banksman.conf is not what the table says (%v); run make generate", err)
	}
}
