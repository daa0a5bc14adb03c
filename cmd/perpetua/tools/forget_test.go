package tools

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestForgetLogOfACopy: a copy must not empty the database or the bucket of the venue that acts. Nothing listens at the address of the
// database, so a command that is not refused fails to connect.
func TestForgetLogOfACopy(t *testing.T) {
	dir := foundedFolder(t)
	forget := func(args ...string) string {
		t.Helper()
		err := ForgetLog(t.Context(), append([]string{"--data", dir, "--journal", fence.Journal}, args...), outputTo(io.Discard))
		if err == nil {
			t.Fatal("the command forgot a log without a database")
		}
		return err.Error()
	}
	database := []string{"--database-url", "postgres://u:p@127.0.0.1:1/db"}
	const refused = "this venue is fenced"
	if said := forget(database...); strings.Contains(said, refused) {
		t.Errorf("without a fence: %s", said)
	}
	keys, err := seal.OpenKeyStore(t.Context(), blob.URLOf(filepath.Join(dir, seal.Folder)))
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	if _, err := fence.Create(t.Context(), keys, scalar.ID{7}, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{database, {"--blob-url", blob.URLOf(t.TempDir())}} {
		if said := forget(args...); !strings.Contains(said, refused) || !strings.Contains(said, "perpetua admin take-over --data "+dir) {
			t.Errorf("a copy with %s: %s", args[0], said)
		}
	}
	given, err := settings.Parse("doctor", []string{"--data", dir}, outputTo(io.Discard), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, location, err := locationOf(t.Context(), given)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fence.TakeOver(t.Context(), keys, scalar.ID{7}, location, 0, func(fence.Fence, error) {}); err != nil {
		t.Fatal(err)
	}
	if said := forget(database...); strings.Contains(said, refused) {
		t.Errorf("after the take-over: %s", said)
	}
	fences, err := filepath.Glob(filepath.Join(dir, seal.Folder, "fence", "*"))
	if err != nil || len(fences) != 1 {
		t.Fatal(fences, err)
	}
	if err := os.WriteFile(fences[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := forget(database...); !strings.Contains(said, "does not tell whether this venue is a copy") {
		t.Errorf("with a damaged fence: %s", said)
	}
}
