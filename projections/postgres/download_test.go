package postgres

import (
	"log/slog"
	"os"
	"testing"
)

// The download needs the network, so it is tried on demand only:
// PERPETUA_TEST_DOWNLOAD=1 go test -run Download ./projections/postgres
func TestDownload(t *testing.T) {
	if os.Getenv("PERPETUA_TEST_DOWNLOAD") == "" {
		t.Skip("set PERPETUA_TEST_DOWNLOAD to try the download")
	}
	cache := t.TempDir()
	folder, err := downloadTo(t.Context(), cache, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if version, err := majorVersion(t.Context(), folder); err != nil || version != "17" {
		t.Fatal(version, err)
	}
	if again, err := downloadTo(t.Context(), cache, slog.New(slog.DiscardHandler)); err != nil || again != folder {
		t.Fatal(again, err)
	}
}
