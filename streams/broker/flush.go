package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
)

// flushed tracks the segment files of one partition and syncs them to disk. In Kafka's terms, it advances the recovery
// point.
//
// kfake appends a batch to its segment in one write before it answers any request about it. So when a response reveals
// an offset, its batch is complete in the file, and a flush that begins afterwards puts it on disk.
type flushed struct {
	dir  string               // folder of the partition
	sync func(*os.File) error // (*os.File).Sync, except in tests

	// recoveryPoint is the offset after the last batch that is on disk. It never decreases.
	recoveryPoint atomic.Int64

	mu       sync.Mutex
	ended    *sync.Cond // signals the end of a flush
	flushing bool
	failed   error // error of the first failed flush, returned to every waiter

	// The recovery point in the files. Only the goroutine that set flushing may access these fields.
	file *os.File // segment; nil before the first one
	base int64    // its first offset
	at   int64    // position in the segment of the batch at the recovery point, which may not be written yet
}

func newFlushed(dir string, toDisk func(*os.File) error) *flushed {
	f := &flushed{dir: dir, sync: toDisk}
	f.ended = sync.NewCond(&f.mu)
	return f
}

// missingError reports that kfake announced an offset that is not in the files.
type missingError struct {
	dir            string
	announced, end int64
}

// Error implements error.
func (e *missingError) Error() string {
	return fmt.Sprintf("kfake announced that %s ends at offset %d, and its segments end at %d", e.dir, e.announced, e.end)
}

// await returns when everything before offset end is on disk. The caller has learned from kfake that it was written.
// Concurrent callers share flushes: the first one flushes, the others wait for it, and the next flush serves every
// caller that arrived during the first.
//
// After a failed flush await never tries again: the kernel may have marked the pages of a failed fsync as clean, and a
// second fsync would succeed with nothing on disk.
func (f *flushed) await(end int64, h *halt) error {
	if f.recoveryPoint.Load() >= end {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for leads := false; f.recoveryPoint.Load() < end; {
		switch {
		case h.stopped():
			return errStopped
		case f.failed != nil:
			return f.failed
		case f.flushing:
			f.ended.Wait()
		case leads:
			// This flush began after the batch was written, so it would have found the batch if it existed.
			return &missingError{f.dir, end, f.recoveryPoint.Load()}
		default:
			f.flushing, leads = true, true
			f.mu.Unlock()
			err := f.flush()
			f.mu.Lock()
			f.flushing = false
			if !errors.Is(err, os.ErrNotExist) { // the partition's folder may be deleted at any time
				// Set before the waiters wake, which happens before the broker stops.
				f.failed = err
			}
			f.ended.Broadcast()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// flush syncs all batches that are complete in the files now.
func (f *flushed) flush() error {
	for {
		if f.file != nil {
			if err := f.flushSegment(); err != nil {
				return err
			}
		}
		// kfake starts a new segment with the batch for which it closed the last one, so the new segment is named after
		// the next offset.
		opened, err := f.openNext()
		if err != nil || !opened {
			return err
		}
	}
}

func (f *flushed) flushSegment() error {
	next, at, err := f.complete()
	if err != nil || at == f.at {
		return err
	}
	if err := f.sync(f.file); err != nil {
		return fmt.Errorf("sync %s: %w", f.file.Name(), err)
	}
	f.at = at
	// This comes last: a goroutine that sees the new recovery point releases an acknowledgement.
	f.recoveryPoint.Store(next)
	return nil
}

// openNext opens the segment that begins at the recovery point. It reports whether there was a segment to open.
func (f *flushed) openNext() (bool, error) {
	next := f.recoveryPoint.Load()
	if f.file != nil && f.base == next {
		return false, nil // already open, and still empty
	}
	file, err := os.Open(filepath.Join(f.dir, strconv.FormatInt(next, 10)+segmentExtension))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A synced file is lost while its directory entry is not synced. The two folders above are also new if this is the
	// partition's first segment.
	for _, dir := range []string{f.dir, filepath.Dir(f.dir), filepath.Dir(filepath.Dir(f.dir))} {
		if err := syncFolder(dir, f.sync); err != nil {
			return false, errors.Join(err, file.Close())
		}
	}
	err = f.close()
	f.file, f.base, f.at = file, next, 0
	return true, err
}

// complete walks over the batches that were appended to the segment since the last flush, and returns the offset and
// the position after the last complete one. A batch that is being written may follow.
func (f *flushed) complete() (next, at int64, err error) {
	next, at = f.recoveryPoint.Load(), f.at
	info, err := f.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	if info.Size() < at {
		return 0, 0, fmt.Errorf("%s has %d bytes and had %d", f.file.Name(), info.Size(), at)
	}
	header := make([]byte, headerSize)
	for at+headerSize <= info.Size() {
		if _, err := f.file.ReadAt(header, at); err != nil {
			return 0, 0, fmt.Errorf("read %s at byte %d: %w", f.file.Name(), at, err)
		}
		fault := checkHeader(header, at, next)
		if fault == nil {
			fault = checkCounts(header, at)
		}
		if fault != nil {
			return 0, 0, fmt.Errorf("%s: %w", f.file.Name(), fault)
		}
		size := lengthFrom + declared(header)
		if size < headerSize || at+size > info.Size() {
			break
		}
		next, at = next+lastOffsetDelta(header)+1, at+size
	}
	return next, at, nil
}

func (f *flushed) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

func syncFolder(dir string, sync func(*os.File) error) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = sync(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
