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

// locationFile in Dir names the folder that holds the data if the account cannot reach Dir. ownerFile in that folder
// names Dir. The two files bind the folders to each other. A new Dir does not find the data of an old one, so it does
// not get the old rows. A copy of Dir names the same data, but the data name the original.
const (
	locationFile = "location"
	ownerFile    = "owner.json"
)

// owner identifies a Dir in ownerFile. A folder that is moved within its file system keeps its inode number. A copy, or
// a folder restored from a backup, has another number.
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

// is reports whether o and now are the same folder: under the same name, under another name, or moved.
func (o owner) is(now owner) bool {
	if o.Inode != now.Inode {
		return false
	}
	// Folders of two file systems may have the same number.
	there, err := os.Stat(o.Folder)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	here, err := os.Stat(now.Folder)
	return err == nil && os.SameFile(there, here)
}

// elsewhere returns the data folder for a dir that the account cannot reach: the folder named by dir, if its data
// belong to dir, else a new one.
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
		return "", errors.Join(err, os.RemoveAll(made)) // no later start would find it
	}
	logger.Warn("the user that Postgres runs as cannot reach the data folder; its data lie elsewhere",
		"user", a.name, "folder", dir, "data", made)
	return made, nil
}

// makeElsewhere creates a folder in a place for variable data. The account owns it.
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

// readOwner returns the Dir that the data in a folder belong to. If the folder does not exist, the error is
// os.ErrNotExist.
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
