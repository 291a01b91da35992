package proc

import (
	"os"
	"testing"
)

func needNamespaces(t *testing.T) {
	t.Helper()
	if err := Namespaces(); err != nil {
		if os.Getenv("BANKSMAN_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}
