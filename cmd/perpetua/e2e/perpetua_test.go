package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// perpetua builds the program that the tests start, once, and returns its path. It is built as the test binary was, with the race
// detector if that has it. The folder of that binary is the go command's, which removes it even if the tests are killed.
var perpetua = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	perpetuaFolder, err = os.MkdirTemp(filepath.Dir(self), "perpetua-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(perpetuaFolder, "perpetua")
	args := append([]string{"build", "-buildvcs=false", "-o", path}, buildFlags()...)
	if out, err := exec.Command("go", append(args, "./altered/perpetua")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %q: %w\n%s", args, err, out)
	}
	return path, nil
})

// perpetuaFolder is the folder of the program, or "" if no test has started it.
var perpetuaFolder string

// removePerpetua removes the program.
func removePerpetua() {
	if perpetuaFolder != "" {
		_ = os.RemoveAll(perpetuaFolder)
	}
}

// buildFlags returns the flags that the test binary was built with and that change the compiled packages. With the same flags
// the go command only has to link.
func buildFlags() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if slices.Contains([]string{"-race", "-trimpath", "-gcflags", "-asmflags", "-tags"}, s.Key) {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// perpetuaPath returns the path of the program that the tests start.
func perpetuaPath(t testing.TB) string {
	t.Helper()
	path, err := perpetua()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPerpetuaIsBuiltAsTheTestsAre compares the flags of the two binaries: a program without the race detector would hide races.
func TestPerpetuaIsBuiltAsTheTestsAre(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "version", "-m", perpetuaPath(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range buildFlags() {
		if !slices.Contains(strings.Fields(string(out)), flag) {
			t.Errorf("the program is built without %s:\n%.600s", flag, out)
		}
	}
}
