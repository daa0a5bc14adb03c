package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// oldestVersion is the oldest major version that the projections' SQL is
// written for.
const oldestVersion = 14

// findBinaries returns the folder of postgres and initdb: of the wanted major
// version if there is one, else the newest that is installed, else downloaded.
func findBinaries(ctx context.Context, a account, want string, logger *slog.Logger) (string, error) {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(path))
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		folders = append(folders, found...)
	}
	best, newest := "", 0
	for _, folder := range slices.Compact(folders) {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err != nil || !a.reaches(folder) {
			continue
		}
		version, err := majorVersion(ctx, folder)
		if ctx.Err() != nil { // the start was given up, which also ended majorVersion
			return "", context.Cause(ctx)
		}
		if err != nil {
			logger.Warn("skipping a Postgres that does not run", "dir", folder, "error", err)
			continue
		}
		number, err := strconv.Atoi(version)
		if err != nil || number < oldestVersion {
			continue
		}
		if version == want {
			return folder, nil
		}
		if number > newest {
			best, newest = folder, number
		}
	}
	if best != "" {
		return best, nil
	}
	return download(ctx, a, logger)
}

// majorVersion asks a Postgres for its version: "postgres (PostgreSQL) 17.2 …".
func majorVersion(ctx context.Context, folder string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", folder, err)
	}
	_, rest, ok := strings.Cut(string(out), ") ")
	if !ok {
		return "", fmt.Errorf("%s has no version: %q", folder, out)
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end <= 0 {
		return "", fmt.Errorf("%s has no version: %q", folder, out)
	}
	return rest[:end], nil
}

// download fetches the embedded-postgres artifacts, once for each user: into the
// user's cache folder, or root's where the account cannot reach that.
func download(ctx context.Context, a account, logger *slog.Logger) (string, error) {
	cache, err := cacheFolder(a)
	if err != nil {
		return "", err
	}
	return downloadTo(ctx, cache, logger)
}

func downloadTo(ctx context.Context, cache string, logger *slog.Logger) (string, error) {
	version := string(embedded.V17)
	target := filepath.Join(cache, "postgres-"+version)
	binaries := filepath.Join(target, "bin")
	done := filepath.Join(target, "complete")
	if _, err := os.Stat(done); err == nil {
		return binaries, nil
	}
	lock, err := broker.WaitFolder(ctx, cache)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := os.Stat(done); err == nil {
		return binaries, nil // by another process meanwhile
	}
	logger.Info("no Postgres is installed; downloading one, once", "version", version, "to", target)
	if err := insist(ctx, embedded.DefaultConfig(), target, logger, time.Second, 5*time.Second); err != nil {
		return "", fmt.Errorf("no Postgres is installed, and downloading one failed (install Postgres %d or newer, or give --database-url): %w",
			oldestVersion, err)
	}
	if err := syncAll(target); err != nil {
		return "", fmt.Errorf("sync %s: %w", target, err)
	}
	return binaries, os.WriteFile(done, nil, 0o644)
}

// syncAll syncs the files and folders of a folder.
func syncAll(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// insist fetches again after each of the pauses, as long as it fails.
func insist(ctx context.Context, from embedded.Config, target string, logger *slog.Logger, pauses ...time.Duration) error {
	err := fetch(from, target)
	for _, pause := range pauses {
		if err == nil {
			return nil
		}
		logger.Warn("downloading a Postgres failed and is tried again", "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		err = fetch(from, target)
	}
	return err
}

// fetch downloads what the configuration says, version and repository, to the target folder.
func fetch(from embedded.Config, target string) error {
	if err := os.RemoveAll(target); err != nil { // what an earlier attempt has left
		return err
	}
	scratch, err := os.MkdirTemp("", "perpetua-postgres-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	// The library can only fetch as the first half of starting a server. Its
	// second half begins with emptying the data directory; below a device
	// there can be none, so it ends there.
	err = embedded.NewDatabase(from.
		Version(embedded.V17).
		Port(0).
		CachePath(scratch).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(filepath.Join(os.DevNull, "none")).
		BinariesPath(target).
		Logger(io.Discard)).Start()
	if _, missing := os.Stat(filepath.Join(target, "bin", "initdb")); missing != nil {
		return errors.Join(err, missing)
	}
	return nil
}

// cacheFolder returns a folder that this process can write and the account read.
func cacheFolder(a account) (string, error) {
	var folders []string
	if user, err := os.UserCacheDir(); err == nil {
		folders = append(folders, filepath.Join(user, "perpetua"))
	}
	folders = append(folders, "/var/cache/perpetua")
	var all error
	for _, folder := range folders {
		err := os.MkdirAll(folder, 0o755)
		if err == nil && a.reaches(folder) {
			return folder, nil
		}
		all = errors.Join(all, err)
	}
	return "", errors.Join(fmt.Errorf("no cache folder that user %s can reach: %s", a.name, strings.Join(folders, ", ")), all)
}
