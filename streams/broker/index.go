package broker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"strings"
)

const (
	segmentExtension = ".dat"
	indexExtension   = ".idx"
)

// index describes an index file and the repair that makes it agree with its segment. An index holds one entry for each
// batch and only data from the segment, so it can always be rebuilt. A crash leaves it short (the batch was written,
// its entry was not) or long (the reverse), a full disk leaves half an entry, and a power cut may leave anything, for
// the index is never synced.
type index struct {
	path  string
	size  int64  // actual size
	right int64  // required size
	agree int64  // length of the prefix that is correct
	rest  []byte // required content after that prefix
}

// indexEntry returns the entry that kfake writes for a batch: version, low byte of the checksum of the rest, leader
// epoch, the highest timestamp so far, and whether the batch belongs to a transaction. Numbers are little-endian.
func indexEntry(b batch, maxTimestamp int64) []byte {
	e := make([]byte, 15)
	e[0] = 1
	binary.LittleEndian.PutUint64(e[6:], uint64(maxTimestamp))
	if b.attributes&attributeTransactional != 0 && b.attributes&attributeControl == 0 {
		e[14] = 1
	}
	e[1] = byte(crc32.Checksum(e[2:], castagnoli))
	return e
}

// indexReader compares an index file with the entries that its segment requires.
type indexReader struct {
	index
	file *os.File
	in   *bufio.Reader
}

func openIndex(segmentPath string) (*indexReader, error) {
	r := &indexReader{in: bufio.NewReader(strings.NewReader(""))}
	r.path = strings.TrimSuffix(segmentPath, segmentExtension) + indexExtension
	file, err := os.Open(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("broker: %w", err), file.Close())
	}
	r.file, r.in, r.size = file, bufio.NewReader(file), info.Size()
	return r, nil
}

func (r *indexReader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// check compares the next entry with the required one.
func (r *indexReader) check(want []byte) error {
	agree := 0
	if r.agree == r.right { // everything before it agrees
		got := make([]byte, len(want))
		n, err := io.ReadFull(r.in, got)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read %s: %w", r.path, err)
		}
		for agree < n && got[agree] == want[agree] {
			agree++
		}
		r.agree += int64(agree)
	}
	r.rest = append(r.rest, want[agree:]...)
	r.right += int64(len(want))
	return nil
}

// repair rewrites the file after the part that agrees. It does not sync: if a crash damages the file, the next start
// mends it again.
func (x index) repair(logger *slog.Logger) error {
	if x.agree == x.right && x.size == x.right {
		return nil
	}
	file, err := os.OpenFile(x.path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("broker: mend index: %w", err)
	}
	err = file.Truncate(x.agree)
	if err == nil {
		_, err = file.WriteAt(x.rest, x.agree)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("broker: mend index %s: %w", x.path, err)
	}
	logger.Info("mended an index from its segment", "file", x.path, "byte", x.agree,
		"dropped", x.size-x.agree, "written", len(x.rest))
	return nil
}
