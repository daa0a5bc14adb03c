package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partSuffix is what the name of a file ends in until the first copy into it is complete.
const partSuffix = ".part"

// Source returns the log of a journal in a file that was written by a copy.
func Source(path, journal string) Log { return &file{path: path, journal: journal, complete: true} }

// Target returns the log of a journal that is to be copied into a file. Until the file is there whole it is PATH.part; to
// a file that is there, what is new is appended.
func Target(path, journal string) Log { return &file{path: path, journal: journal} }

type file struct {
	path     string
	journal  string
	complete bool // an end in the middle of a line is a fault, and not what a copy left that was broken off
}

// String returns the path.
func (f *file) String() string { return f.path }

func (f *file) compressed() bool { return strings.HasSuffix(f.path, ".zst") }

// place is where the file is at present: under its name, or under that of one that is not complete yet.
func (f *file) place() (string, error) {
	_, err := os.Stat(f.path)
	if errors.Is(err, os.ErrNotExist) && !f.complete {
		return f.path + partSuffix, nil
	}
	return f.path, err
}

// Records reads the lines of the journal.
func (f *file) Records(context.Context) (Records, error) {
	path, err := f.place()
	if err != nil {
		return nil, err
	}
	content, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && !f.complete {
		return &fileRecords{lines: bufio.NewReader(strings.NewReader(""))}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &fileRecords{path: path, journal: f.journal, file: content}
	if err := r.open(f.compressed(), !f.complete); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

type fileRecords struct {
	path    string
	journal string
	file    *os.File
	zstd    *zstd.Decoder
	lines   *bufio.Reader
	number  int64 // of the last line that was read, from 1
}

// open begins to read; wholeOnly leaves out what a copy has left that was broken off.
func (r *fileRecords) open(compressed, wholeOnly bool) error {
	var from io.Reader = r.file
	if wholeOnly {
		end, err := wholeEnd(r.file, compressed)
		if err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
		from = io.NewSectionReader(r.file, 0, end)
	}
	if compressed {
		decoder, err := zstd.NewReader(from)
		if err != nil {
			return err
		}
		r.zstd, from = decoder, decoder
	}
	r.lines = bufio.NewReaderSize(from, 1<<20)
	return nil
}

// Next returns the next record of the journal.
func (r *fileRecords) Next(ctx context.Context) (*kgo.Record, error) {
	for ctx.Err() == nil {
		text, err := r.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil, io.EOF
		}
		r.number++
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%s:%d: it ends in the middle of a line: the copy into it was broken off", r.path, r.number)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", r.path, r.number, err)
		}
		journal, record, err := parseLine(text[:len(text)-1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: this is not the line of a record: %w", r.path, r.number, err)
		}
		if journal == r.journal {
			return record, nil
		}
	}
	return nil, ctx.Err()
}

// Close closes the file.
func (r *fileRecords) Close() {
	if r.zstd != nil {
		r.zstd.Close()
	}
	if r.file != nil {
		r.file.Close()
	}
}

// Append cuts off what a copy has left that was broken off, and goes on from there.
func (f *file) Append(context.Context) (Appender, error) {
	path, err := f.place()
	if err != nil {
		return nil, err
	}
	content, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // the log holds what not everybody may read
	if err != nil {
		return nil, err
	}
	a := &fileAppender{path: f.path, at: path, journal: f.journal, file: content, compressed: f.compressed()}
	if err := a.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), content.Close())
	}
	return a, nil
}

// frameBytes is about how much a compressed file holds in one frame: what a copy that is broken off may lose.
const frameBytes = 4 << 20

type fileAppender struct {
	path, at   string // what it is called in the end, and now
	journal    string
	file       *os.File
	compressed bool
	encoder    *zstd.Encoder
	lines      []byte
}

func (a *fileAppender) open() (err error) {
	end, err := wholeEnd(a.file, a.compressed)
	if err == nil {
		err = a.file.Truncate(end)
	}
	if err == nil {
		_, err = a.file.Seek(end, io.SeekStart)
	}
	if err == nil && a.compressed {
		a.encoder, err = zstd.NewWriter(nil)
	}
	return err
}

// Append keeps the line until there are enough.
func (a *fileAppender) Append(_ context.Context, r *kgo.Record) (err error) {
	if a.lines, err = appendLine(a.lines, a.journal, r); err != nil || len(a.lines) < frameBytes {
		return err
	}
	return a.write()
}

func (a *fileAppender) write() error {
	out := a.lines
	if a.compressed && len(out) > 0 {
		out = a.encoder.EncodeAll(out, nil)
	}
	a.lines = a.lines[:0]
	_, err := a.file.Write(out)
	return err
}

// Close syncs the file. It does not get its name here: Finish gives it.
func (a *fileAppender) Close(context.Context) error {
	err := a.write()
	if err == nil {
		err = a.file.Sync()
	}
	return errors.Join(err, a.file.Close())
}

// Finish gives a file its name after all journals have been copied into it.
func Finish(path string) error {
	err := os.Rename(path+partSuffix, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it had it before
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// wholeEnd returns where the last whole line of a file ends, or its last whole frame. What follows has to be the beginning of
// another one, as a copy leaves it that was broken off: anything else is not ours to cut off.
func wholeEnd(f *os.File, compressed bool) (end int64, err error) {
	about, err := f.Stat()
	if err != nil {
		return 0, err
	}
	all, begins := io.NewSectionReader(f, 0, about.Size()), lineBegins
	if compressed {
		begins = frameBegins
		end, err = framesEnd(all)
	} else {
		end, err = linesEnd(all)
	}
	if err != nil {
		return 0, err
	}
	rest := make([]byte, min(int64(len(begins)), about.Size()-end))
	if _, err := f.ReadAt(rest, end); err != nil {
		return 0, err
	}
	if !strings.HasPrefix(begins, string(rest)) {
		return 0, errors.New("it was not written by a copy, and is left as it is")
	}
	return end, nil
}

// What each line and each frame of a copy begins with.
const (
	lineBegins  = `{"journal":"`
	frameBegins = "\x28\xb5\x2f\xfd"
)

// linesEnd returns where the last whole line ends.
func linesEnd(f *io.SectionReader) (int64, error) {
	tail := make([]byte, 64<<10)
	for end := f.Size(); end > 0; {
		start := max(0, end-int64(len(tail)))
		part := tail[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// framesEnd returns where the last whole frame of a series of Zstandard frames ends (RFC 8878, 3.1.1). It looks at the
// heads of frames and blocks only.
func framesEnd(f *io.SectionReader) (end int64, err error) {
	for end < f.Size() {
		head := make([]byte, min(zstd.HeaderMaxSize, f.Size()-end))
		if _, err := f.ReadAt(head, end); err != nil {
			return 0, err
		}
		var h zstd.Header
		if err := h.Decode(head); errors.Is(err, io.ErrUnexpectedEOF) {
			return end, nil
		} else if err != nil {
			return 0, err
		}
		at := end + int64(h.HeaderSize)
		if h.Skippable {
			at += int64(h.SkippableSize)
		} else if at, err = blocksEnd(f, at); err != nil {
			return 0, err
		}
		if h.HasCheckSum {
			at += 4
		}
		if at > f.Size() {
			return end, nil // the last one was cut off
		}
		end = at
	}
	return end, nil
}

// blocksEnd returns where the blocks of a frame end that begin at a place; beyond the end if they do not end.
func blocksEnd(f *io.SectionReader, at int64) (int64, error) {
	const runLength = 1 // a type of block that stores one byte, however long it is
	for {
		var head [3]byte
		if at+int64(len(head)) > f.Size() {
			return f.Size() + 1, nil
		}
		if _, err := f.ReadAt(head[:], at); err != nil {
			return 0, err
		}
		n := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16
		last, kind, size := n&1 == 1, n>>1&3, n>>3
		if kind == runLength {
			size = 1
		}
		at += int64(len(head)) + size
		if last {
			return at, nil
		}
	}
}
