// Package need says what becomes of a test whose surroundings are not there.
//
// A machine without a tool, a right or a file system may still run the other tests: the
// test is skipped, and says by name for want of what. Where BANKSMAN_REQUIRE is 1
// everything has to be there, as .ci/run arranges, and the same test fails. The package
// knows the standard library alone, so that any package's tests can use it.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// required says whether everything has to be there.
func required() bool { return os.Getenv("BANKSMAN_REQUIRE") == "1" }

// Missing ends a test for want of something.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if required() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Program returns the path of a program, or ends the test.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is missing", name)
	}
	return path
}

// Root ends a test that only root can run.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "only root can: %s", why)
	}
}
