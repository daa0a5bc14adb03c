package schemas

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// released lists the migrations of all releases with the SHA-256 of each, as sha256sum prints them.
//
//go:embed testdata/released.sha256
var released string

// TestReleasedMigrationsStay: a migration of a release never changes, because databases have applied it. Others only come
// after the last one. A release appends its new migrations to testdata/released.sha256.
func TestReleasedMigrationsStay(t *testing.T) {
	last := ""
	listed := make(map[string]bool)
	for line := range strings.Lines(released) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := fs.ReadFile(SQL, "sql/"+name)
		if err != nil {
			t.Errorf("a released migration is gone: %v", err)
			continue
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != hash {
			t.Errorf("%s was released and must not change: append a migration", name)
		}
		if name <= last {
			t.Errorf("%s is listed after %s", name, last)
		}
		last, listed[name] = name, true
	}
	if len(listed) < 13 {
		t.Errorf("only %d released migrations", len(listed))
	}
	files, err := fs.ReadDir(SQL, "sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !listed[f.Name()] && f.Name() <= last {
			t.Errorf("%s does not come after the released %s", f.Name(), last)
		}
	}
	for i, f := range files {
		if want := fmt.Sprintf("%05d_", 25+i); !strings.HasPrefix(f.Name(), want) {
			t.Errorf("%s is not number %s…", f.Name(), want)
		}
	}
}
