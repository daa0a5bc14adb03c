package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/perpetua-exchange/perpetua/streams/base"
)

// HeadFolder keeps a head per file, TOPIC-PARTITION.json. Its folder is made with the first file.
type HeadFolder struct {
	Dir         string
	TopicPrefix string // of the journals' topics
}

var _ Heads = HeadFolder{}

// Head implements Heads.
func (f HeadFolder) Head(_ context.Context, journal string, partition int32) (*Head, error) {
	path := f.path(journal, partition)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h, err := ParseHead(bytes.TrimSuffix(text, []byte("\n")))
	if err == nil && (h.Base.Journal != journal || h.Base.Partition != partition) {
		err = fmt.Errorf("it is of %s/%d", h.Base.Journal, h.Base.Partition)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; if the archive or Postgres has a sound copy, delete this file", path, err)
	}
	return h, nil
}

// Keep implements Heads. After a crash the file holds the old copy or the new one. A data folder belongs to one process, which
// MUST NOT keep two heads of one partition at the same time.
func (f HeadFolder) Keep(ctx context.Context, h Head) error {
	if err := h.Validate(); err != nil {
		return err
	}
	stored, err := f.Head(ctx, h.Base.Journal, h.Base.Partition)
	if err != nil {
		return err
	}
	if newer, err := h.Replaces(stored); err != nil || !newer && *stored != h {
		return err
	}
	if err := base.MakeFolder(f.Dir); err != nil { // an earlier call may have failed after it renamed the file
		return err
	}
	return base.WriteFile(f.path(h.Base.Journal, h.Base.Partition), append(h.JSON(), '\n'))
}

// Forget deletes the copy of a head, if there is one.
func (f HeadFolder) Forget(journal string, partition int32) error {
	return base.RemoveFile(f.path(journal, partition))
}

func (f HeadFolder) path(journal string, partition int32) string {
	return base.PartitionFile(f.Dir, f.TopicPrefix+journal, partition)
}

// String implements Heads.
func (f HeadFolder) String() string { return "the folder " + f.Dir }
