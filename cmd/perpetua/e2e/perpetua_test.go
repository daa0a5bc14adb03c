package e2e

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
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

// buildFlags returns the flags of compiledBy that the test binary was built with. With the same flags the go command only has to
// link.
func buildFlags() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return compiledBy(info)
}

// compiledBy returns the flags of a binary that change its compiled packages.
func compiledBy(info *debug.BuildInfo) (flags []string) {
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	flags := func(binary string) []string {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		return compiledBy(info)
	}
	if got, want := flags(perpetuaPath(t)), flags(self); !slices.Equal(got, want) {
		t.Errorf("the program is built with %q, the tests with %q", got, want)
	}
}
