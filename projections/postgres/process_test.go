package postgres

import (
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"testing"
)

// TestForeignServer: another server has taken the port since it was chosen, and has the same password, as a copied folder has. The new
// server can't listen there, and the answer of the other one is not taken for its own.
func TestForeignServer(t *testing.T) {
	var first, second *process
	var address url.URL
	var port int
	for _, p := range []**process{&first, &second} {
		dir, err := os.MkdirTemp("", "perpetua-test-") // which the server's user can reach
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		c, err := openCluster(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		password, err := c.prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p == &first {
			if port, err = c.choosePort(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			address = url.URL{Scheme: "postgres", User: url.UserPassword(superuser, password), Host: "127.0.0.1:" + strconv.Itoa(port), Path: "/" + database}
		}
		if *p, err = c.launch(t.Context(), port); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*p).stop() })
		if p == &first {
			if err := first.awaitAnswer(t.Context(), address); err != nil {
				t.Fatal(err, c.lastLog())
			}
		}
	}
	if err := second.awaitAnswer(t.Context(), address); !errors.Is(err, errExited) {
		t.Errorf("%v, want %v", err, errExited)
	}
}
