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

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// folderStore stores each object in a separate file, readable by the folder's owner only.
type folderStore struct {
	root string
	// The folder may be created; otherwise every operation fails while it is missing, for example because it is not
	// mounted.
	made  bool
	slots chan struct{}
	sync  func(*os.File) error // (*os.File).Sync, except in tests
}

// unfinishedDir is the folder of files that are being written. A file that a killed process left there is unused.
const unfinishedDir = "unfinished"

// abandonedAfter is the age, since its last write, at which an unfinished file counts as abandoned.
const abandonedAfter = time.Hour

// openFolder opens the store in a folder, and deletes abandoned unfinished files. It does not create the folder: the
// first object written does, so looking up a key leaves no trace.
func openFolder(path string, create bool) (*folderStore, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &folderStore{root, create, make(chan struct{}, pending), (*os.File).Sync}
	if err := s.mounted(); err != nil {
		return nil, err
	}
	left, err := os.ReadDir(filepath.Join(root, unfinishedDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range left {
		if about, err := e.Info(); err == nil && time.Since(about.ModTime()) > abandonedAfter {
			_ = os.Remove(filepath.Join(root, unfinishedDir, e.Name())) // if this fails, the next start tries again
		}
	}
	return s, nil
}

func (s *folderStore) close() error { return nil }

// mounted returns an error if the folder is missing and must not be created.
func (s *folderStore) mounted() error {
	if s.made {
		return nil
	}
	if about, err := os.Stat(s.root); err != nil {
		// Not fs.ErrNotExist, which would mean that a key does not exist.
		return fmt.Errorf("%w: there is no folder %s", ErrAway, s.root)
	} else if !about.IsDir() {
		return fmt.Errorf("%w: %s is no folder", ErrAway, s.root)
	}
	return nil
}

func (s *folderStore) path(name string) string {
	return filepath.Join(s.root, filepath.FromSlash(name))
}

func (s *folderStore) read(ctx context.Context, name string) ([]byte, error) {
	return inTime(ctx, s.slots, patience, func() ([]byte, error) {
		content, err := readSecret(s.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			if away := s.mounted(); away != nil {
				return nil, away
			}
		}
		return content, err
	})
}

func (s *folderStore) create(ctx context.Context, name string, content []byte) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.createFile(s.path(name), content) })
	return err
}

// createFile creates a file that appears whole or not at all. It syncs the file before it links it to its name, and the
// folders above it afterwards: in any other order a power cut could leave the name without the content, or neither.
func (s *folderStore) createFile(path string, content []byte) error {
	if err := s.mounted(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unfinished, err := s.writeBeside(content)
	if err != nil {
		return err
	}
	defer os.Remove(unfinished) // the file stays under its other name
	// A rename would replace a file that another process has created since and may have sealed with.
	if err := os.Link(unfinished, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			// The other process may not have synced the folder yet, and the caller will use the existing key. It MUST NOT if this
			// sync fails, so that error is not fs.ErrExist.
			if failed := s.syncUpTo(filepath.Dir(path)); failed != nil {
				return failed
			}
		}
		return err
	}
	return s.syncUpTo(filepath.Dir(path))
}

// writeBeside writes and syncs a new file in the folder of unfinished files, and returns its path. The caller must
// remove or rename it.
func (s *folderStore) writeBeside(content []byte) (path string, err error) {
	folder := filepath.Join(s.root, unfinishedDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(folder, "key-*") // creates it with mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err == nil {
		err = s.sync(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

func (s *folderStore) replace(ctx context.Context, name string, content []byte) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.replaceFile(s.path(name), content) })
	return err
}

// replaceFile renames a new file over an existing one and keeps the file's owner: an administrator may replace a file
// that the venue reads as another user.
func (s *folderStore) replaceFile(path string, content []byte) error {
	about, err := os.Stat(path)
	if err != nil {
		return err
	}
	unfinished, err := s.writeBeside(content)
	if err != nil {
		return err
	}
	if owner, ok := about.Sys().(*syscall.Stat_t); ok {
		err = os.Lchown(unfinished, int(owner.Uid), int(owner.Gid))
	}
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return blob.SyncFolder(s.sync, filepath.Dir(path))
}

func (s *folderStore) overwrite(ctx context.Context, name string, content []byte) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.overwriteFile(s.path(name), content) })
	return err
}

// openToWrite opens an existing file and returns its size.
func openToWrite(path string) (file *os.File, size int64, err error) {
	file, err = os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	about, err := file.Stat()
	if err != nil {
		_ = file.Close() // the error of Stat says more
		return nil, 0, err
	}
	return file, about.Size(), nil
}

// overwriteFile writes over the blocks of the existing file. Replacing the file would leave the old blocks on the disk,
// where undelete tools find them. So would an unfinished name of the file, which a killed process has not removed.
func (s *folderStore) overwriteFile(path string, content []byte) error {
	file, size, err := openToWrite(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if size > int64(len(content)) { // a file that this store did not write is cleared too
		content = append(content[:len(content):len(content)], make([]byte, size-int64(len(content)))...)
	}
	if _, err := file.WriteAt(content, 0); err != nil {
		return err
	}
	return s.sync(file)
}

func (s *folderStore) remove(ctx context.Context, name string) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.removeFile(s.path(name)) })
	return err
}

// removeFile removes a file and then overwrites its blocks. In this order no process can open the file without its
// content.
func (s *folderStore) removeFile(path string) error {
	file, size, err := openToWrite(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := blob.SyncFolder(s.sync, filepath.Dir(path)); err != nil {
		return err
	}
	if _, err := file.WriteAt(make([]byte, size), 0); err != nil {
		return err
	}
	return s.sync(file)
}

func (s *folderStore) list(ctx context.Context, folder string) ([]string, error) {
	return inTime(ctx, s.slots, patience, func() ([]string, error) {
		entries, err := os.ReadDir(s.path(folder))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, s.mounted()
		}
		var names []string
		for _, e := range entries {
			if !e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names, err
	})
}

// syncUpTo syncs a folder and those above it, up to the parent of the store's root.
func (s *folderStore) syncUpTo(path string) error {
	for {
		err := blob.SyncFolder(s.sync, path)
		if above := filepath.Dir(s.root); path == above || path == filepath.Dir(path) {
			if errors.Is(err, fs.ErrPermission) { // this process has written nothing in a folder that it cannot read
				err = nil
			}
			return err
		}
		if err != nil {
			return err
		}
		path = filepath.Dir(path)
	}
}
