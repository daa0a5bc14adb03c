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

// flushed follows the segment files of one partition and takes them to the disk
// (in Kafka's words: it moves the recovery point).
//
// kfake appends a batch to its segment in one write before anybody hears of it.
// So whoever holds a response that tells of an offset finds its batch complete
// in the file, and a flush that begins after that takes it to the disk.
type flushed struct {
	dir  string               // of the partition
	sync func(*os.File) error // (*os.File).Sync but for tests

	// recoveryPoint is the offset after the last batch that is on the disk. It
	// never goes back.
	recoveryPoint atomic.Int64

	mu       sync.Mutex
	ended    *sync.Cond // a flush has ended
	flushing bool
	failed   error // of the first flush that failed, for all that wait

	// The place of the recovery point. They belong to whoever set flushing.
	file *os.File // the segment; nil before the first
	base int64    // its first offset
	at   int64    // the byte in it where the batch of the recovery point begins, or will
}

func newFlushed(dir string, toDisk func(*os.File) error) *flushed {
	f := &flushed{dir: dir, sync: toDisk}
	f.ended = sync.NewCond(&f.mu)
	return f
}

// missingError says that kfake told of an offset that is not in the files.
type missingError struct {
	dir       string
	told, end int64
}

// Error implements error.
func (e *missingError) Error() string {
	return fmt.Sprintf("kfake tells that %s ends at offset %d, and its segments end at %d", e.dir, e.told, e.end)
}

// await returns when everything before the offset is on the disk. The caller
// knows from kfake that it was written. Those who wait share one flush: the
// first of them flushes, the others, and whoever comes meanwhile, wait for it,
// and the next flush is for all of them together.
//
// After a flush that failed nobody tries again: the kernel may take the pages of
// a failed fsync for clean, and a second one would succeed with nothing on the
// disk.
func (f *flushed) await(end int64, h *halt) error {
	if f.recoveryPoint.Load() >= end {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for mine := false; f.recoveryPoint.Load() < end; {
		switch {
		case h.stopped():
			return errStopped
		case f.failed != nil:
			return f.failed
		case f.flushing:
			f.ended.Wait()
		case mine:
			// This flush began after the batch was written, so it has met
			// everything that is there.
			return &missingError{f.dir, end, f.recoveryPoint.Load()}
		default:
			f.flushing, mine = true, true
			f.mu.Unlock()
			err := f.flush()
			f.mu.Lock()
			f.flushing = false
			if !errors.Is(err, os.ErrNotExist) { // the partition's folder may be deleted at any time
				// Before the others wake: they come here before the broker stops.
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

// flush takes to the disk what is complete in the files at this moment.
func (f *flushed) flush() error {
	for {
		if f.file != nil {
			if err := f.flushSegment(); err != nil {
				return err
			}
		}
		// kfake begins a segment with the batch for which it has closed the last
		// one, so the next has the name of the next offset.
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
	// The last step: who sees the new recovery point hands on an acknowledgement.
	f.recoveryPoint.Store(next)
	return nil
}

// openNext goes on to the segment that begins at the recovery point, if there
// is one.
func (f *flushed) openNext() (bool, error) {
	next := f.recoveryPoint.Load()
	if f.file != nil && f.base == next {
		return false, nil // it is open, and still empty
	}
	file, err := os.Open(filepath.Join(f.dir, strconv.FormatInt(next, 10)+segmentExtension))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A file that is on the disk is of no use while its name is not. The names
	// above it are new as well if this is the partition's first.
	for _, dir := range []string{f.dir, filepath.Dir(f.dir), filepath.Dir(filepath.Dir(f.dir))} {
		if err := syncFolder(dir, f.sync); err != nil {
			return false, errors.Join(err, file.Close())
		}
	}
	err = f.close()
	f.file, f.base, f.at = file, next, 0
	return true, err
}

// complete walks over the batches that were added to the segment, and returns
// the offset and the byte after the last complete one. Behind it there may be
// the beginning of one that is being written at this moment.
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
