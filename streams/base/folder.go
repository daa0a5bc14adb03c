package base

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Folder keeps a base per file, TOPIC-PARTITION.json. Its folder is made with the first file.
type Folder struct {
	Dir         string
	TopicPrefix string // of the journals' topics

	sync func(dir string) error // syncFolder if nil; for tests
}

var _ Keeper = Folder{}

// Base implements Source.
func (f Folder) Base(_ context.Context, journal string, partition int32) (*record.Base, error) {
	path := f.path(journal, partition)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := record.ParseBase(bytes.TrimSuffix(text, []byte("\n")))
	if err == nil && (b.Journal != journal || b.Partition != partition) {
		err = fmt.Errorf("it holds the %v", b)
	}
	if err != nil {
		return nil, &DamagedError{Source: path, Err: err, Remedy: "delete this file"}
	}
	return &b, nil
}

// Keep implements Keeper. After a crash the file holds the old copy or the new one.
func (f Folder) Keep(ctx context.Context, b record.Base) error {
	if err := b.Validate(); err != nil {
		return err
	}
	stored, err := f.Base(ctx, b.Journal, b.Partition)
	if err != nil {
		return err
	}
	if stored != nil && *stored != b {
		if err := MayReplace(*stored, b); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	if err := makeFolder(f.Dir, f.syncFolder); err != nil {
		return err
	}
	if stored != nil && *stored == b { // an earlier call may have failed after it renamed the file
		return f.syncFolder(f.Dir)
	}
	return WriteFile(f.path(b.Journal, b.Partition), append(b.JSON(), '\n'))
}

// MakeFolder makes a folder with its parents. It syncs the entry of the folder always, since an earlier call may have failed
// before it did, and the entries of the parents that it makes.
func MakeFolder(dir string) error { return makeFolder(dir, syncFolder) }

func makeFolder(folder string, sync func(dir string) error) error {
	missing := 1
	for dir := filepath.Dir(folder); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing++
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for dir := folder; missing > 0; missing-- {
		dir = filepath.Dir(dir)
		if err := sync(dir); err != nil {
			return err
		}
	}
	return nil
}

func (f Folder) syncFolder(dir string) error {
	if f.sync != nil {
		return f.sync(dir)
	}
	return syncFolder(dir)
}

// Forget deletes the copy of a base, if there is one.
func (f Folder) Forget(journal string, partition int32) error {
	return RemoveFile(f.path(journal, partition))
}

func (f Folder) path(journal string, partition int32) string {
	return PartitionFile(f.Dir, f.TopicPrefix+journal, partition)
}

// String implements Source.
func (f Folder) String() string { return "the folder " + f.Dir }

// PartitionFile returns the path of a file in dir that belongs to one partition of a topic: TOPIC-PARTITION.json.
func PartitionFile(dir, topic string, partition int32) string {
	return filepath.Join(dir, topic+"-"+strconv.Itoa(int(partition))+".json")
}

// RemoveFile deletes a file. It returns nil if there is no such file.
func RemoveFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteFile replaces a file atomically and syncs it and its folder: after it returns, no crash loses the new content.
func WriteFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
