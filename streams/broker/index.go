package broker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
)

const (
	segmentExtension = ".dat"
	indexExtension   = ".idx"
)

// index is what an index file needs so that it agrees with its segment. An
// index holds one entry for each batch and nothing that the segment does not,
// so after a crash it may be short (the batch was written, its entry was not)
// or long (the other way round), but never different.
type index struct {
	path    string
	size    int64  // as it is
	right   int64  // as it must be
	missing []byte // what to append to it
}

// indexEntry is the entry that kfake writes for a batch: version, the low byte
// of the checksum of the rest, leader epoch, the highest timestamp so far, and
// whether the batch belongs to a transaction; numbers little-endian.
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

// indexReader compares an index file with what its segment says.
type indexReader struct {
	index
	file   *os.File
	in     *bufio.Reader
	faulty bool // the index differs
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

// check compares the next entry.
func (r *indexReader) check(want []byte) error {
	got := make([]byte, len(want))
	n, err := io.ReadFull(r.in, got)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	for i := range n {
		if got[i] != want[i] {
			r.faulty = true
			return &fault{r.right + int64(i), "the index does not agree with its segment, which is intact; without the index file a start makes it again"}
		}
	}
	r.missing = append(r.missing, want[n:]...)
	r.right += int64(len(want))
	return nil
}
