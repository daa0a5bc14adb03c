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
	made  bool // the folder may be made; else nothing is kept while it is not there, perhaps because nothing is mounted
	slots chan struct{}
	sync  func(*os.File) error // (*os.File).Sync; for tests
}

// beside is the folder of files that are being written. One that a killed process left there is nobody's.
const beside = "unfinished"

// abandonedAfter is how long after its last write an unfinished file counts as abandoned.
const abandonedAfter = time.Hour

// openFolder opens the store in a folder, and clears up what others left unfinished. The folder is made with the first thing
// that is kept there: who only looks for a key leaves no trace.
func openFolder(path string, create bool) (*folderStore, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &folderStore{root, create, make(chan struct{}, pending), (*os.File).Sync}
	if err := s.mounted(); err != nil {
		return nil, err
	}
	left, err := os.ReadDir(filepath.Join(root, beside))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// mounted returns an error if the folder has to be there and is not.
func (s *folderStore) mounted() error {
	if s.made {
		return nil
	}
	if about, err := os.Stat(s.root); err != nil {
		return fmt.Errorf("%w: the folder %s, which has to be there, is not", ErrAway, s.root) // and no fs.ErrNotExist, which says that there is no key
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

// createFile makes a file that appears whole or not at all. It is synced before it has its name, and the folders that lead to
// it after that: in any other order a power cut could leave the name without the content, or neither.
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
	defer os.Remove(unfinished) // whatever its other name
	// Not a rename, which would take the place of what another process has put there meanwhile and sealed with.
	if err := os.Link(unfinished, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			// The other may not have synced the folder yet, and whoever finds the key there goes on to use it.
			return errors.Join(err, s.syncUpTo(filepath.Dir(path)))
		}
		return err
	}
	return s.syncUpTo(filepath.Dir(path))
}

// writeBeside writes a new file among the unfinished ones, syncs it, and returns its path. The caller removes or renames it.
func (s *folderStore) writeBeside(content []byte) (path string, err error) {
	folder := filepath.Join(s.root, beside)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(folder, "key-*") // mode 0600
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

// replaceFile renames a new file to the path of one that exists, and keeps its owner: an administrator may replace a file that
// the venue reads as another user.
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
	return s.syncFolder(filepath.Dir(path))
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

func (s *folderStore) remove(ctx context.Context, name string) error {
	_, err := inTime(ctx, s.slots, patience, func() (struct{}, error) { return struct{}{}, s.removeFile(s.path(name)) })
	return err
}

// removeFile removes a file, and what it held from its blocks: in this order nobody meets a file without its content.
func (s *folderStore) removeFile(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := s.syncFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if _, err := file.WriteAt(make([]byte, about.Size()), 0); err != nil {
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

// syncUpTo syncs a folder and those above it, up to the one that the store's own is in.
func (s *folderStore) syncUpTo(path string) error {
	for {
		err := s.syncFolder(path)
		if above := filepath.Dir(s.root); path == above || path == filepath.Dir(path) {
			if errors.Is(err, fs.ErrPermission) { // one that we may not even read we have not written in
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
