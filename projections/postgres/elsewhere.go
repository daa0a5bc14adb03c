package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// locationFile in Dir names the folder that holds the data when Dir cannot be
// reached by the account, and ownerFile in that folder names Dir. They bind the
// two: without Dir, the data are not found again, so a new Dir does not meet the
// rows of an old one; and a copy of Dir, which names the same data, is not the
// folder that those are of.
const (
	locationFile = "location"
	ownerFile    = "owner.json"
)

// owner is a folder as its data elsewhere know it. A folder that is moved within
// its file system keeps its number; a copy, or what is restored from a backup,
// has another.
type owner struct {
	Folder string `json:"folder"`
	Inode  uint64 `json:"inode"`
}

func ownerOf(dir string) (owner, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return owner{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{}, fmt.Errorf("%s has no number in its file system", dir)
	}
	return owner{dir, stat.Ino}, nil
}

// is says whether the folder that data belong to is this one: under the same
// name, or another, or moved from where it was.
func (o owner) is(now owner) bool {
	if o.Inode != now.Inode {
		return false
	}
	// Two folders of two file systems may have one number.
	there, err := os.Stat(o.Folder)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	here, err := os.Stat(now.Folder)
	return err == nil && os.SameFile(there, here)
}

// elsewhere returns the folder for the data of a dir that the account cannot
// reach: the one that dir names, if that is dir's own, else a new one.
func (a account) elsewhere(dir string, logger *slog.Logger) (string, error) {
	now, err := ownerOf(dir)
	if err != nil {
		return "", err
	}
	note := filepath.Join(dir, locationFile)
	if text, err := os.ReadFile(note); err == nil {
		base := strings.TrimSpace(string(text))
		known, err := readOwner(base)
		switch {
		case errors.Is(err, os.ErrNotExist):
			// The data are gone.
		case err != nil:
			return "", err
		case known.is(now):
			return base, errors.Join(a.makeFolder(base), a.writeOwner(base, now))
		default:
			logger.Warn("this folder is a copy: the data that it names are of another one; starting with an empty database, which the projections fill again",
				"folder", dir, "data", base, "of", known.Folder)
		}
	}
	made, err := a.makeElsewhere()
	if err != nil {
		return "", fmt.Errorf("user %s, as which Postgres would run, cannot reach %s: make the folder's parents passable (chmod o+x): %w", a.name, dir, err)
	}
	if err := errors.Join(a.writeOwner(made, now), os.WriteFile(note, []byte(made+"\n"), 0o600)); err != nil {
		return "", err
	}
	logger.Warn("the user that Postgres runs as cannot reach the data folder; its data lie elsewhere",
		"user", a.name, "folder", dir, "data", made)
	return made, nil
}

// makeElsewhere makes a folder of the account's in a place for variable data.
func (a account) makeElsewhere() (string, error) {
	for _, parent := range []string{"/var/lib/perpetua", os.TempDir()} {
		if err := os.MkdirAll(parent, 0o755); err != nil || !a.reaches(parent) {
			continue
		}
		made, err := os.MkdirTemp(parent, "postgres-")
		if err != nil {
			continue
		}
		return made, a.makeFolder(made)
	}
	return "", errors.New("nor any other place for its data")
}

// readOwner returns whose data are in a folder. Where there is no folder, the
// error is os.ErrNotExist.
func readOwner(base string) (o owner, err error) {
	text, err := os.ReadFile(filepath.Join(base, ownerFile))
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, fmt.Errorf("%s: %w", filepath.Join(base, ownerFile), err)
	}
	return o, nil
}

func (a account) writeOwner(base string, o owner) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return a.writeFile(filepath.Join(base, ownerFile), string(text)+"\n")
}
