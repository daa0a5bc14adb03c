package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// folder is the driver of a bucket in a folder: a blob is a file, and its key is the file's path.
//
// gocloud's own driver reads a file of attributes for each blob, even to list them, and opens any kind of file with
// that name. A pipe of that name would block every listing. This driver has no attributes, opens files without
// blocking, and treats only regular files as blobs.
type folder struct {
	root string
	sync func(*os.File) error // (*os.File).Sync, except in tests
}

var _ driver.Bucket = (*folder)(nil)

// newFolder returns the driver of a folder. If create is set, it creates a missing folder, accessible to its owner
// only.
func newFolder(path string, create bool) (*folder, error) {
	if create {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
	}
	root, err := filepath.Abs(path)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, err
	}
	if about, err := os.Stat(root); err != nil {
		return nil, err
	} else if !about.IsDir() {
		return nil, fmt.Errorf("%s: %w", root, syscall.ENOTDIR)
	}
	return &folder{root, (*os.File).Sync}, nil
}

// path returns the path of a blob's file.
func (f *folder) path(key string) (string, error) {
	if !fs.ValidPath(key) || key == "." {
		return "", fmt.Errorf("%q is no path below a folder: %w", key, fs.ErrInvalid)
	}
	return filepath.Join(f.root, filepath.FromSlash(key)), nil
}

// folderOf returns the folder that contains all keys with a prefix, "." for the root. A prefix that leads out of the
// root, or is not a clean path, is an error: no key has it.
func folderOf(prefix string) (string, error) {
	end := strings.LastIndexByte(prefix, '/')
	if end < 0 {
		return ".", nil
	}
	if below := prefix[:end]; below == "." || !fs.ValidPath(below) {
		return "", fmt.Errorf("%q is no path below a folder: %w", prefix, fs.ErrInvalid)
	}
	return prefix[:end], nil
}

// ListPaged returns all blobs in one page. If the path to the prefix is not a folder, the page is empty.
func (f *folder) ListPaged(_ context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.Delimiter != "" {
		return nil, errors.ErrUnsupported
	}
	below, err := folderOf(opts.Prefix)
	if err != nil {
		return nil, err
	}
	top := filepath.Join(f.root, filepath.FromSlash(below))
	page := new(driver.ListPage)
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if path == top && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return err
			}
			return nil // deleted during the walk, or not a blob
		}
		if entry.IsDir() {
			return nil
		}
		about, err := os.Stat(path)
		if err != nil || !about.Mode().IsRegular() {
			return nil
		}
		relative, err := filepath.Rel(f.root, path)
		if key := filepath.ToSlash(relative); err == nil && strings.HasPrefix(key, opts.Prefix) {
			page.Objects = append(page.Objects, &driver.ListObject{Key: key, ModTime: about.ModTime(), Size: about.Size(), AsFunc: none})
		}
		return err
	})
	slices.SortFunc(page.Objects, func(a, b *driver.ListObject) int { return strings.Compare(a.Key, b.Key) })
	return page, err
}

// folderReader reads a range of a file.
type folderReader struct {
	io.Reader
	io.Closer
	attributes driver.ReaderAttributes
}

func (r *folderReader) Attributes() *driver.ReaderAttributes { return &r.attributes }
func (r *folderReader) As(any) bool                          { return false }

// NewRangeReader opens a file for reading.
func (f *folder) NewRangeReader(_ context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	path, err := f.path(key)
	if err != nil {
		return nil, err
	}
	// Without O_NONBLOCK, opening a pipe blocks until another process opens it for writing. A pipe may have replaced
	// the blob after it was listed.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: %w", path, fs.ErrNotExist)
	}
	if err == nil && offset > 0 {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	r := &folderReader{file, file, driver.ReaderAttributes{ModTime: about.ModTime(), Size: about.Size()}}
	if length >= 0 {
		r.Reader = io.LimitReader(file, length)
	}
	return r, nil
}

// folderWriter writes a blob under a temporary name that Temporary recognizes.
type folderWriter struct {
	*os.File
	ctx    context.Context // ends when the blob is abandoned
	folder *folder
	path   string
	absent bool  // fail if the blob exists
	failed error // of Write
}

// NewTypedWriter starts to write a blob.
func (f *folder) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	path, err := f.path(key)
	if err == nil && opts.BeforeWrite != nil {
		err = opts.BeforeWrite(none)
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(fmt.Sprintf("%s.%016x.tmp", path, rand.Uint64()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &folderWriter{File: file, ctx: ctx, folder: f, path: path, absent: opts.IfNotExist}, nil
}

// Write implements driver.Writer.
func (w *folderWriter) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if err != nil {
		w.failed = err
	}
	return n, err
}

// Close gives the file the blob's name, unless the context has ended or a write has failed: gocloud also closes a writer that has failed,
// and a file that was cut off by a full disk would replace the blob. It syncs the file before and the folders
// above it after the rename: in any other order a power cut could leave the name without the content.
func (w *folderWriter) Close() error {
	defer os.Remove(w.Name()) // does nothing after a successful rename
	err := cmp.Or(w.failed, w.ctx.Err())
	if err == nil {
		err = w.folder.sync(w.File)
	}
	if err = errors.Join(err, w.File.Close()); err != nil {
		return err
	}
	put := os.Rename
	if w.absent {
		put = os.Link // which fails if the file exists, where a rename would replace it
	}
	if err := put(w.Name(), w.path); err != nil {
		return err
	}
	return w.folder.syncUpTo(filepath.Dir(w.path))
}

// syncUpTo syncs a folder and those above it, up to the root.
func (f *folder) syncUpTo(path string) error {
	for {
		if err := SyncFolder(f.sync, path); err != nil || path == f.root || path == filepath.Dir(path) {
			return err
		}
		path = filepath.Dir(path)
	}
}

// SyncFolder syncs a folder with sync, which is (*os.File).Sync except in tests.
func SyncFolder(sync func(*os.File) error, path string) error {
	at, err := os.Open(path)
	if err != nil {
		return err
	}
	defer at.Close()
	// Some file systems do not support syncing folders, or do not need it.
	if err := sync(at); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// Delete deletes a blob.
func (f *folder) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	path, err := f.path(key)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// ErrorCode implements driver.Bucket.
func (f *folder) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gcerrors.NotFound
	case errors.Is(err, fs.ErrExist):
		return gcerrors.FailedPrecondition
	case errors.Is(err, fs.ErrInvalid):
		return gcerrors.InvalidArgument
	case errors.Is(err, errors.ErrUnsupported):
		return gcerrors.Unimplemented
	case errors.Is(err, fs.ErrPermission):
		return gcerrors.PermissionDenied
	}
	return gcerrors.Unknown
}

// The remaining methods of driver.Bucket are not used.

func none(any) bool { return false }

func (f *folder) As(any) bool             { return false }
func (f *folder) ErrorAs(error, any) bool { return false }
func (f *folder) Close() error            { return nil }

func (f *folder) Attributes(context.Context, string) (*driver.Attributes, error) {
	return nil, errors.ErrUnsupported
}

func (f *folder) Copy(context.Context, string, string, *driver.CopyOptions) error {
	return errors.ErrUnsupported
}

func (f *folder) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errors.ErrUnsupported
}
