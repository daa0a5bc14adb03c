package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// FormerFile is the file in the data folder in which older versions stored the master key. It is among the blobs, which
// are backed up to systems that must not hold keys.
const FormerFile = "blob/keys/master.key"

// moveFormer moves the master key of an older version into the store. The key is durable in the store before the old
// file is removed. A move that was interrupted in between is completed.
func moveFormer(ctx context.Context, s store, path string) error {
	key, err := readFormer(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.create(ctx, File, encode(key))
	if errors.Is(err, fs.ErrExist) {
		stored, err := read(ctx, s)
		if err != nil {
			return err
		}
		if !bytes.Equal(stored, key) {
			return fmt.Errorf("%s and the key store hold different master keys: remove the wrong one", path)
		}
	} else if err != nil {
		return err
	}
	return removeFormer(path)
}

func readFormer(path string) ([]byte, error) {
	text, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	key, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// readSecret reads a file that only its owner can read.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o and must be readable by its owner only (0600)", path, mode)
	}
	return os.ReadFile(path)
}

// removeFormer removes the file, and its folder if that is then empty.
func removeFormer(path string) error {
	former := &folderStore{sync: (*os.File).Sync}
	if err := former.removeFile(path); err != nil {
		return err
	}
	if folder := filepath.Dir(path); os.Remove(folder) == nil {
		return blob.SyncFolder(former.sync, filepath.Dir(folder))
	}
	return nil
}
