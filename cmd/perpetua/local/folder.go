package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// Folder is the data folder: it holds all files of a node. OpenFolder locks it for this process.
type Folder struct {
	Dir  string
	lock *broker.Lock
}

// OpenFolder creates the folder if it is missing, and locks it. If another process holds the lock, the error names that
// process.
func OpenFolder(dir string) (*Folder, error) { return openFolder(dir, broker.LockFolder) }

// OpenFolderSoon is OpenFolder for the start of a node. It waits for a few seconds for another process to unlock the
// folder: one that was killed may still be ending. The kind is CheckVenue or CheckFollower; its error is returned.
func OpenFolderSoon(ctx context.Context, dir string, log *slog.Logger, kind func(*Folder) error) (*Folder, error) {
	d, err := openFolder(dir, func(dir string) (*broker.Lock, error) { return broker.LockFolderSoon(ctx, dir, log) })
	if err != nil {
		return nil, err
	}
	if err := kind(d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func openFolder(dir string, locked func(dir string) (*broker.Lock, error)) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, err := locked(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{dir, lock}, nil
}

// Close unlocks the folder. The kernel does the same when the process dies.
func (d *Folder) Close() error { return d.lock.Unlock() }

// Path returns a path inside the folder.
func (d *Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{d.Dir}, elem...)...)
}

// NodeID returns the configured id of the node, or a UUID that is generated once and stored in the folder.
func (d *Folder) NodeID(configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	stored, err := os.ReadFile(d.Path("node-id"))
	if err == nil {
		return strings.TrimSpace(string(stored)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("node id: %w", err)
	}
	id := uuid.NewString()
	return id, writeWhole(d.Path("node-id"), []byte(id+"\n"), 0o644)
}

// Keep writes a small file in the folder, unless it already has that content.
func (d *Folder) Keep(name, content string) error {
	if stored, err := os.ReadFile(d.Path(name)); err == nil && string(stored) == content {
		return nil
	}
	return writeWhole(d.Path(name), []byte(content), 0o644)
}

// Files of the data folder of a venue.
const (
	UsersFile = "users.json"    // the first users and their passwords
	KeyIDFile = "master-key-id" // the id of the master key that sealed the embedded log
	venueFile = "venue"         // says that a node of a venue has run on the folder
)

// SetVenue writes to the folder that its node is one of a venue. Call it once the node is open: a command that fails must not set the
// kind of a folder.
func (d *Folder) SetVenue() error { return d.Keep(venueFile, "a node of a venue runs here\n") }

// followsFile is the file in the folder of a follower that says what it follows, also while it does not run.
const followsFile = "follows"

// SetFollows writes to the folder what its node follows: FollowsBrokers or FollowsArchive, or "" for nothing. Call it once
// the node is open, like SetVenue.
func (d *Folder) SetFollows(source string) error {
	if source != "" {
		return d.Keep(followsFile, source+"\n")
	}
	if err := os.Remove(d.Path(followsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// Follows returns what the node on the folder follows, also if it does not run: FollowsBrokers or FollowsArchive, or "" for a node
// of a venue. It does not know the followers of builds that did not call SetFollows.
func (d *Folder) Follows() string {
	if running, ok, err := ReadRunFile(d.Path("run.json")); err == nil && ok {
		return running.Follows
	}
	stored, _ := os.ReadFile(d.Path(followsFile))
	return strings.TrimSpace(string(stored))
}

// CheckVenue returns an error if the folder is that of a follower. A node of a venue must not use its database, keys, and log.
func (d *Folder) CheckVenue() error {
	source := d.Follows()
	if source == "" {
		return nil
	}
	text := fmt.Sprintf("the folder %s is that of a node that follows a venue: start perpetua follow on it, or name another folder with --data", d.Dir)
	if source == FollowsArchive {
		text += "; perpetua log copy --from " + d.Dir + " --to FOLDER copies its log for a venue"
	}
	// Earlier builds let a follower start on the folder of a venue.
	if name, err := d.venueSign(); err != nil {
		return err
	} else if name != "" {
		text += fmt.Sprintf("; but it also has %s, which a venue has written: if it is the folder of the venue, remove the file %s", name, d.Path(followsFile))
	}
	return errors.New(text)
}

// CheckFollower returns an error if the folder is that of a venue. A follower must not use its database, bucket, and keys.
func (d *Folder) CheckFollower() error {
	if d.Follows() != "" {
		return nil
	}
	name, err := d.venueSign()
	if err != nil {
		return err
	}
	if name != "" {
		return fmt.Errorf("the folder %s is that of a venue, as %s in it shows: name another folder for the follower with --data", d.Dir, name)
	}
	return nil
}

// venueSign returns the name of a file in the folder that only a venue writes, or "". Earlier builds did not write venueFile.
func (d *Folder) venueSign() (string, error) {
	for _, name := range []string{UsersFile, KeyIDFile, filepath.Join("keys", "fence"), venueFile} {
		_, err := os.Stat(d.Path(name))
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("data folder: %w", err)
		}
	}
	return "", nil
}

// writeWhole writes a file atomically: after a crash it exists whole or not at all.
func writeWhole(path string, content []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := tmp.Chmod(mode); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if _, err := tmp.Write(content); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Sync(); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
