package trading

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVenuesAreSourced: every example of another venue says where it was published, is listed in the README beside it, and
// stands among those that are different here if it says so.
func TestVenuesAreSourced(t *testing.T) {
	const folder = "testdata/venues/"
	readme, err := os.ReadFile(folder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	same, rest, ok := strings.Cut(string(readme), "## Different here")
	different, _, more := strings.Cut(rest, "## Read, and not made a scenario")
	if !ok || !more {
		t.Fatal("the README has no such parts")
	}
	files, err := filepath.Glob(folder + "*.scenario")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\nlist ")
		name := "`" + strings.TrimSuffix(filepath.Base(file), ".scenario") + "`"
		where := same
		if strings.Contains(head, "# DIFFERS") {
			where = different
		}
		if !strings.Contains(head, "https://") || !strings.Contains(head, "# Published") || !strings.Contains(where, name) {
			t.Errorf("%s has no source, or is not where it belongs in the README", file)
		}
	}
}
