package policy

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestSoak fuzzes each reader of the gate for ten minutes when BANKSMAN_SOAK is 1; the
// fuzzers of one package share them. It needs a -timeout far above that.
// BANKSMAN_SOAK_TIME sets another duration.
func TestSoak(t *testing.T) {
	if os.Getenv("BANKSMAN_SOAK") != "1" {
		t.Skip("BANKSMAN_SOAK is not 1")
	}
	length, err := time.ParseDuration(orElse(os.Getenv("BANKSMAN_SOAK_TIME"), "10m"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		folder  string
		targets []string
	}{
		{".", []string{"FuzzParse", "FuzzAssess", "FuzzTexts", "FuzzImportAgentSafe"}},
		{"../shell", []string{"FuzzRead", "FuzzQuotes"}},
		{"../redact", []string{"FuzzRedact", "FuzzDetector"}},
		{"../hook", []string{"FuzzRead", "FuzzInstall"}},
		{"../mcp", []string{"FuzzArguments"}},
		{"../imported", []string{"FuzzRead"}},
	} {
		share := length / time.Duration(len(p.targets))
		for _, target := range p.targets {
			t.Run(p.folder+" "+target, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", share.String(), "-fuzzminimizetime", "10x", "-timeout", "0", p.folder)
				cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
				if err := cmd.Run(); err != nil {
					t.Fatalf("fuzz %s of %s for %s: %v", target, p.folder, share, err)
				}
			})
		}
	}
}
