// Package program finds the programs that tests run, such as curl and psql. Where the environment variable CI is set they must
// be installed; elsewhere a test without its program is skipped.
package program

import (
	"os"
	"os/exec"
	"testing"
)

// Need skips a test if a program is not installed, or fails it if CI is set.
func Need(t testing.TB, program string) {
	t.Helper()
	if _, ok := Find(t, program); !ok {
		t.Skipf("%s is not installed (.ci/run names the Debian package)", program)
	}
}

// Find returns the path of a program, or false if it is not installed. If CI is set, it then fails the test.
func Find(t testing.TB, program string) (path string, ok bool) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed, and CI is set: .ci/run installs it", program)
	}
	if err != nil {
		t.Logf("%s is not installed: what it would check is left out", program)
	}
	return path, err == nil
}
