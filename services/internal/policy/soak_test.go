package policy

import (
	"os"
	"os/exec"
	"testing"
)

// TestSoak runs each fuzzer for ten minutes when BANKSMAN_SOAK is 1; it needs a -timeout
// above that. BANKSMAN_SOAK_TIME sets another duration.
func TestSoak(t *testing.T) {
	if os.Getenv("BANKSMAN_SOAK") != "1" {
		t.Skip("BANKSMAN_SOAK is not 1")
	}
	length := orElse(os.Getenv("BANKSMAN_SOAK_TIME"), "10m")
	for _, target := range [][2]string{
		{".", "FuzzParse"}, {".", "FuzzAssess"}, {".", "FuzzTexts"}, {".", "FuzzImportAgentSafe"}, {"../shell", "FuzzRead"}, {"../shell", "FuzzQuotes"},
	} {
		t.Run(target[1], func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-fuzz", "^"+target[1]+"$", "-fuzztime", length, "-fuzzminimizetime", "10x", "-timeout", "0", target[0])
			cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
			if err := cmd.Run(); err != nil {
				t.Fatalf("fuzz %s for %s: %v", target[1], length, err)
			}
		})
	}
}
