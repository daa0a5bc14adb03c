package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FormerFile is where older versions kept the master key inside the data folder: among the blobs, which are copied to where
// no key may be.
const FormerFile = "blob/keys/master.key"

// moveFormer moves the master key of an older version into the store. It is durable there before it is removed here, and a
// move that was broken off between the two is gone on with.
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
		kept, err := read(ctx, s)
		if err != nil {
			return err
		}
		if !bytes.Equal(kept, key) {
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

// readSecret reads a file that nobody but its owner may read.
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

// removeFormer removes the file, and its folder if nothing else is in there.
func removeFormer(path string) error {
	former := &folderStore{sync: (*os.File).Sync}
	if err := former.removeFile(path); err != nil {
		return err
	}
	if folder := filepath.Dir(path); os.Remove(folder) == nil {
		return former.syncFolder(filepath.Dir(folder))
	}
	return nil
}
