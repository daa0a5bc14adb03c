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
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// partSuffix is the suffix of a file's name until the first copy into it is complete.
const partSuffix = ".part"

// Source returns the log of a journal in a complete file that a copy has written. all has the names of the journals of which the
// file may have records; none stands for any. Another name is then a *LineError, and the lines of the other journals are not parsed.
func Source(path, journal string, all ...string) Log {
	return &file{path: path, journal: journal, complete: true, all: all}
}

// InterruptedSource returns the log like Source. It leaves out the incomplete line or frame at the end of the file, which a copy that
// was killed has left.
func InterruptedSource(path, journal string, all ...string) Log {
	return &file{path: path, journal: journal, complete: true, cut: true, all: all}
}

// Target returns the log of a journal in a file to copy into. Until the first copy is complete, the file is PATH.part.
// A copy into an existing file appends the new records.
func Target(path, journal string) Log { return &file{path: path, journal: journal} }

// Held returns those of the journals with these names of which a file that a copy has written has a record. It returns an error if
// there is none, for example because the file is empty. After a line that cannot be read it returns every name, because the readers
// of the journals report that line.
func Held(ctx context.Context, path string, journals []string) (held []string, err error) {
	records, err := Source(path, "").Records(ctx)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	for lines := records.(*fileRecords); len(held) < len(journals); {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		text, err := lines.line()
		switch {
		case errors.Is(err, io.EOF) && lines.number == 0:
			return nil, fmt.Errorf("%s: the file is empty", path)
		case errors.Is(err, io.EOF) && len(held) == 0:
			return nil, fmt.Errorf("%s: the file has no record of %s", path, strings.Join(journals, ", "))
		case errors.Is(err, io.EOF):
			return held, nil
		case err != nil:
			return journals, nil
		}
		if name := journalOf(text); slices.Contains(held, name) {
			continue // its reader checks the line
		}
		journal, b, _, err := lines.parser.parse(text)
		if err != nil {
			return journals, nil
		}
		if b == nil && slices.Contains(journals, journal) {
			held = append(held, journal)
		}
	}
	return held, nil
}

type file struct {
	path     string
	journal  string
	complete bool     // an incomplete last line is an error, and not the result of an interrupted copy
	cut      bool     // leave out the incomplete end of a complete file
	all      []string // the journals that the file may have; none for any
}

// String returns the path.
func (f *file) String() string { return f.path }

func (f *file) compressed() bool { return strings.HasSuffix(f.path, ".zst") }

// currentPath returns the current path of the file, which ends in partSuffix while the file is incomplete.
func (f *file) currentPath() (string, error) {
	_, err := os.Stat(f.path)
	if errors.Is(err, os.ErrNotExist) && !f.complete {
		return f.path + partSuffix, nil
	}
	return f.path, err
}

// Base returns the base that the file has before the records of the journal.
func (f *file) Base(ctx context.Context) (*record.Base, error) {
	records, err := f.Records(ctx)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	lines := records.(*fileRecords)
	if _, err := lines.Next(ctx); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return lines.base, nil
}

// Records returns the records of the journal.
func (f *file) Records(context.Context) (Records, error) {
	path, err := f.currentPath()
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
	r := &fileRecords{path: path, journal: f.journal, all: f.all, file: content}
	if err := r.open(f.compressed(), !f.complete || f.cut); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

type fileRecords struct {
	path    string
	journal string
	all     []string
	file    *os.File
	zstd    *zstd.Decoder
	lines   *bufio.Reader
	parser  lineParser
	number  int64        // number of the last line read, from 1
	base    *record.Base // of the journal, if the file has it
	begun   bool         // a base or a record of the journal was read
}

// open starts to read. With wholeOnly, it ignores the incomplete end that an interrupted copy has left.
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

// LineError reports a line that no copy writes, or that can't be read.
type LineError struct {
	Path string
	Line int64 // from 1
	Err  error
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

func (r *fileRecords) wrong(err error) error { return &LineError{r.path, r.number, err} }

// line returns the next line without its newline, or io.EOF. The line is valid until the next call.
func (r *fileRecords) line() ([]byte, error) {
	text, err := r.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		var rest []byte
		begins := slices.Clone(text)
		rest, err = r.lines.ReadBytes('\n')
		text = append(begins, rest...)
	}
	if errors.Is(err, io.EOF) && len(text) == 0 {
		return nil, io.EOF
	}
	r.number++
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, r.wrong(errors.New("it ends in the middle of a line: a copy into it was interrupted; perpetua log copy --interrupted copies the lines before it"))
	}
	if err != nil {
		return nil, r.wrong(err)
	}
	return text[:len(text)-1], nil
}

// Next returns the next record of the journal.
func (r *fileRecords) Next(ctx context.Context) (*kgo.Record, error) {
	for ctx.Err() == nil {
		text, err := r.line()
		if err != nil {
			return nil, err
		}
		if r.passes(text) {
			continue
		}
		journal, b, k, err := r.parser.parse(text)
		if err != nil {
			return nil, r.wrong(err)
		}
		if len(r.all) > 0 && !slices.Contains(r.all, journal) {
			return nil, r.wrong(fmt.Errorf("there is no journal %q", journal))
		}
		switch {
		case journal != r.journal:
		case b != nil && r.begun:
			return nil, r.wrong(errors.New("this base does not come before the records of its journal"))
		case b != nil:
			r.base, r.begun = b, true
		default:
			r.begun = true
			return k, nil
		}
	}
	return nil, ctx.Err()
}

// passes reports whether a line is of another journal that the file may have. The reader of that journal checks the line.
func (r *fileRecords) passes(text []byte) bool {
	name := journalOf(text)
	return name != r.journal && slices.Contains(r.all, name)
}

// journalOf returns the journal that a line names first, or "".
func journalOf(text []byte) string {
	rest, ok := bytes.CutPrefix(text, []byte(`{"journal":"`))
	name, _, ended := bytes.Cut(rest, []byte(`"`))
	if !ok || !ended {
		return ""
	}
	return string(name)
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

// Append returns an appender at the end of the file, after truncating the incomplete end that an interrupted copy has
// left. A file that holds nothing of the journal gets the line of the base. One that has another base, or none, is an
// *OtherError: it holds a log that begins elsewhere.
func (f *file) Append(ctx context.Context, b *record.Base) (Appender, error) {
	begun, err := f.begun(ctx, b)
	if err != nil {
		return nil, err
	}
	path, err := f.currentPath()
	if err != nil {
		return nil, err
	}
	content, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // the log holds confidential data
	if err != nil {
		return nil, err
	}
	a := &fileAppender{path: f.path, at: path, journal: f.journal, file: content, out: content, compressed: f.compressed()}
	if err := a.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), content.Close())
	}
	if b != nil && !begun {
		if a.lines, err = appendBase(nil, *b); err != nil {
			return nil, errors.Join(err, content.Close())
		}
	}
	return a, nil
}

// begun reports whether the file has a base or a record of the journal. It returns an error if they are not those of b.
func (f *file) begun(ctx context.Context, b *record.Base) (bool, error) {
	records, err := f.Records(ctx)
	if err != nil {
		return false, err
	}
	defer records.Close()
	lines := records.(*fileRecords)
	_, err = lines.Next(ctx)
	some := err == nil
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch has := lines.base; {
	case has == nil && !some:
		return false, nil
	case (has == nil) != (b == nil) || has != nil && *has != *b:
		return false, &OtherError{f.path, 0, "is of a log that begins elsewhere"}
	}
	return true, nil
}

// frameBytes is the approximate size of the content of a compressed frame. An interrupted copy loses at most this much.
const frameBytes = 4 << 20

type fileAppender struct {
	path, at   string // final path and current path
	journal    string
	file       *os.File
	out        io.Writer // file, except in tests
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

// Append buffers the line until there are enough for a frame.
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
	n, err := a.out.Write(out)
	if err != nil {
		return errors.Join(err, a.truncate(n))
	}
	return nil
}

// truncate removes the last n bytes, which a failed write has left. Otherwise a full disk would make the whole backup unreadable.
func (a *fileAppender) truncate(n int) error {
	end, err := a.file.Seek(-int64(n), io.SeekCurrent)
	if err != nil {
		return err
	}
	return a.file.Truncate(end)
}

// Close writes the rest and syncs the file. Finish renames it.
func (a *fileAppender) Close(context.Context) error {
	err := a.write()
	if err == nil {
		err = a.file.Sync()
	}
	return errors.Join(err, a.file.Close())
}

// Finish gives a file its final name, after all journals have been copied into it.
func Finish(path string) error {
	err := os.Rename(path+partSuffix, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the file already has its final name
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

// wholeEnd returns the end of the last complete line of a file, or of the last complete frame. If data follows, it must
// be the beginning of another line or frame, as an interrupted copy leaves it. Otherwise another program wrote the
// file, and wholeEnd returns an error so that it is not truncated.
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

// The beginning of every line and every frame of a copy.
const (
	lineBegins  = `{"journal":"`
	frameBegins = "\x28\xb5\x2f\xfd"
)

// linesEnd returns the end of the last complete line.
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

// framesEnd returns the end of the last complete frame in a series of Zstandard frames (RFC 8878, 3.1.1). It reads only
// the headers of frames and blocks.
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
			return end, nil // the last frame is incomplete
		}
		end = at
	}
	return end, nil
}

// blocksEnd returns the end of the blocks of a frame, which begin at the offset at. It returns a value beyond the end
// of the file if the blocks are incomplete.
func blocksEnd(f *io.SectionReader, at int64) (int64, error) {
	const runLength = 1 // a block of this type stores one byte, regardless of its size field
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
