package postgres

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// TestADownloadThatFailsIsTriedAgain downloads from a server that has nothing.
func TestADownloadThatFailsIsTriedAgain(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	from, target := embedded.DefaultConfig().BinaryRepositoryURL(server.URL), filepath.Join(t.TempDir(), "postgres")
	logger := slog.New(slog.DiscardHandler)
	if err := insist(t.Context(), from, target, logger, 0, 0); err == nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	asked.Store(0)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := insist(ended, from, target, logger, time.Hour); !errors.Is(err, context.Canceled) || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// TestAnEndedSearchBlamesNoPostgres: a venue whose broker fails at the start ends the search. The log must not say that an installed
// Postgres does not run.
func TestAnEndedSearchBlamesNoPostgres(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	ended, end := context.WithCancel(t.Context())
	end()
	var log strings.Builder
	found, err := findBinaries(ended, account{uid: os.Getuid(), gid: os.Getgid()}, "", slog.New(slog.NewTextHandler(&log, nil)))
	if found != "" || !errors.Is(err, context.Canceled) || log.Len() > 0 {
		t.Errorf("%q, %v, and the log says: %s", found, err, log.String())
	}
}

// The download needs the network, so it is tried on demand only:
// PERPETUA_TEST_DOWNLOAD=1 go test -run Download ./projections/postgres
func TestDownload(t *testing.T) {
	if os.Getenv("PERPETUA_TEST_DOWNLOAD") == "" {
		t.Skip("set PERPETUA_TEST_DOWNLOAD to try the download")
	}
	root, err := os.MkdirTemp("", "perpetua-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	folder, err := downloadTo(t.Context(), root, logger)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := downloadTo(t.Context(), root, logger); err != nil || again != folder {
		t.Fatal(again, err)
	}
	c, err := openCluster(t.Context(), root, logger)
	if err != nil {
		t.Fatal(err)
	}
	c.binaries = folder
	password, err := c.prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	port, err := c.choosePort(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.launch(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.stop() }()
	address := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, password),
		Host: "127.0.0.1:" + strconv.Itoa(port), Path: "/" + database}
	if err := p.awaitAnswer(t.Context(), address); err != nil {
		t.Fatal(err, c.lastLog())
	}
	if version, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION")); err != nil || string(version) != "17\n" {
		t.Fatal(string(version), err)
	}
}
