package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Environment is the variable that may hold the master key, in base64.
const Environment = "PERPETUA_MASTER_KEY"

// File is where the master key is kept inside the data folder, in base64. It is in the folder of blobs because it
// has to outlive everything that can be rebuilt from the log.
const File = "blob/keys/master.key"

// ErrNoKey says that there is no master key although one is needed to read what was sealed.
var ErrNoKey = errors.New("there is no master key, and the log holds values sealed with one: restore " + File +
	" in the data folder or set " + Environment)

// Options say where the master key is.
type Options struct {
	// Folder is the data folder; empty where the key may only come from the environment.
	Folder string
	// Value is what the environment holds, in base64; empty if it is not set.
	Value string
	// Create allows a new key to be made in the folder if there is none. It must be false as soon as an identity
	// journal exists: a new key could not open what is in there.
	Create bool
}

// Open finds the master key, or makes one where that is allowed.
func Open(o Options) (*Box, error) {
	var given []byte
	if o.Value != "" {
		var err error
		if given, err = decode([]byte(o.Value)); err != nil {
			return nil, fmt.Errorf("%s: %w", Environment, err)
		}
	}
	if o.Folder == "" {
		if given == nil {
			return nil, ErrNoKey
		}
		return New(given)
	}
	path := filepath.Join(o.Folder, filepath.FromSlash(File))
	kept, err := read(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("master key: %w", err)
	case err == nil && given != nil && !bytes.Equal(kept, given):
		return nil, fmt.Errorf("%s and %s hold different master keys: remove the wrong one", Environment, path)
	case given != nil:
		return New(given)
	case err == nil:
		return New(kept)
	case !o.Create:
		return nil, ErrNoKey
	}
	if kept, err = create(path); err != nil {
		return nil, fmt.Errorf("make a master key: %w", err)
	}
	return New(kept)
}

func decode(text []byte) ([]byte, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("the master key must be %d bytes in padded base64", KeySize)
	}
	return key, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o and must be readable by its owner only (0600)", path, mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// create makes a key and keeps it. The file appears whole or not at all, and is on disk before anything is sealed with
// it. If another process was first, its key counts.
func create(path string) ([]byte, error) {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	temporary, err := os.CreateTemp(folder, "master-*.tmp") // mode 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	defer temporary.Close()
	if _, err := temporary.WriteString(base64.StdEncoding.EncodeToString(key) + "\n"); err != nil {
		return nil, err
	}
	if err := temporary.Sync(); err != nil {
		return nil, err
	}
	if err := os.Link(temporary.Name(), path); errors.Is(err, fs.ErrExist) {
		return read(path)
	} else if err != nil {
		return nil, err
	}
	for _, d := range []string{folder, filepath.Dir(folder), filepath.Dir(filepath.Dir(folder))} {
		if err := syncFolder(d); err != nil {
			return nil, err
		}
	}
	return key, nil
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
