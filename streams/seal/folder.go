package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folderStore keeps each thing in a file of its own, which only the folder's owner may read.
type folderStore struct {
	root  string
	slots chan struct{}
	sync  func(*os.File) error // (*os.File).Sync; for tests
}

// beside is the folder of files that are being written. One that a killed process left there is nobody's.
const beside = "unfinished"

// abandonedAfter is how long after its last write an unfinished file counts as abandoned.
const abandonedAfter = time.Hour

// openFolder opens the store in a folder, makes it if need be, and clears up what others left unfinished.
func openFolder(path string) (*folderStore, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &folderStore{root, make(chan struct{}, pending), (*os.File).Sync}
	if err := os.MkdirAll(filepath.Join(root, beside), 0o700); err != nil {
		return nil, err
	}
	for _, made := range []string{root, filepath.Dir(root)} {
		if err := s.syncFolder(made); err != nil && !errors.Is(err, fs.ErrPermission) { // one that we may not even read we have not made
			return nil, err
		}
	}
	left, err := os.ReadDir(filepath.Join(root, beside))
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		if about, err := e.Info(); err == nil && time.Since(about.ModTime()) > abandonedAfter {
			_ = os.Remove(filepath.Join(root, beside, e.Name())) // or it is cleared up next time
		}
	}
	return s, nil
}

func (s *folderStore) close() error { return nil }

func (s *folderStore) path(name string) string {
	return filepath.Join(s.root, filepath.FromSlash(name))
}

func (s *folderStore) read(ctx context.Context, name string) ([]byte, error) {
	return inTime(ctx, s.slots, patience, func() ([]byte, error) { return os.ReadFile(s.path(name)) })
}

func (s *folderStore) create(ctx context.Context, name string, content []byte) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.createFile(s.path(name), content) })
	return err
}

// createFile makes a file that appears whole or not at all. It is synced before it has its name, and the folders that lead to
// it after that: in any other order a power cut could leave the name without the content, or neither.
func (s *folderStore) createFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Join(s.root, beside), "key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // whatever its other name
	_, err = file.Write(content)
	if err == nil {
		err = s.sync(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	// Not a rename, which would take the place of what another process has put there meanwhile and sealed with.
	if err := os.Link(file.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			// The other may not have synced the folder yet, and whoever finds the key there goes on to use it.
			return errors.Join(err, s.syncUpTo(filepath.Dir(path)))
		}
		return err
	}
	return s.syncUpTo(filepath.Dir(path))
}

func (s *folderStore) overwrite(ctx context.Context, name string, content []byte) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.overwriteFile(s.path(name), content) })
	return err
}

// overwriteFile writes over the file's own blocks. A file that took its name would leave those behind, where tools that
// restore deleted files find them; and so would the name that a killed process has not removed from the unfinished ones.
func (s *folderStore) overwriteFile(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return err
	}
	if size := about.Size(); size > int64(len(content)) { // nothing of ours; nothing of it may be left all the same
		content = append(content[:len(content):len(content)], make([]byte, size-int64(len(content)))...)
	}
	if _, err := file.WriteAt(content, 0); err != nil {
		return err
	}
	return s.sync(file)
}

// syncUpTo syncs a folder and those above it, up to the store's own.
func (s *folderStore) syncUpTo(path string) error {
	for {
		if err := s.syncFolder(path); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		if path == s.root || path == filepath.Dir(path) {
			return nil
		}
		path = filepath.Dir(path)
	}
}

func (s *folderStore) syncFolder(path string) error {
	at, err := os.Open(path)
	if err != nil {
		return err
	}
	defer at.Close()
	// Some file systems sync no folders, and need it not or can't.
	if err := s.sync(at); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
