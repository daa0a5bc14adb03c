package format

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
)

// samples are a whole file of each kind.
func samples() map[Format][]byte {
	return map[Format][]byte{PDF: formattest.PDF(), JPEG: formattest.JPEG(), PNG: formattest.PNG(), WebP: formattest.WebP(), HEIC: formattest.HEIC(), XLSX: formattest.XLSX(), CSV: []byte("day,amount\n2026-01-01,5\n")}
}

// TestWholeFiles reads each sample at once and byte by byte.
func TestWholeFiles(t *testing.T) {
	for want, file := range samples() {
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(file), "by bytes": iotest.OneByteReader(bytes.NewReader(file)), "with its end": iotest.DataErrReader(bytes.NewReader(file))} {
			if got, err := Identify(r, true); got != want || err != nil {
				t.Errorf("%s, %s: %s, %v", want, name, got, err)
			}
		}
		if got, err := Identify(bytes.NewReader(file), false); want.IsTable() == (err == nil) || !want.IsTable() && got != want {
			t.Errorf("%s without tables: %s, %v", want, got, err)
		}
		if want.MediaType() == "" {
			t.Errorf("%s has no media type", want)
		}
	}
}

// TestCutFiles cuts each sample at every byte. A table may end after any of its lines.
func TestCutFiles(t *testing.T) {
	for kind, file := range samples() {
		if kind == CSV {
			continue
		}
		for n := range len(file) {
			if kind == PDF && n == len(file)-1 || kind == XLSX && n < 4 { // without its last line break; text of two letters
				continue
			}
			var fault *Error
			if got, err := Identify(bytes.NewReader(file[:n]), kind.IsTable()); !errors.As(err, &fault) {
				t.Errorf("%d of %d bytes of %s: %s, %v", n, len(file), kind, got, err)
			}
		}
	}
}

// TestABrokenStream: a stream that fails is not a file that is at fault.
func TestABrokenStream(t *testing.T) {
	broken := errors.New("the connection is gone")
	for kind, file := range samples() {
		for _, n := range []int{0, 5, 20, len(file) / 2, len(file) - 1} {
			if kind == JPEG && n == len(file)-1 {
				n++ // what is behind a photograph is read as well
			}
			r := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken))
			if _, err := Identify(r, true); !errors.Is(err, broken) {
				t.Errorf("%s after %d bytes: %v", kind, n, err)
			}
		}
	}
}

// TestRefused: what is not what it begins as, or more than that.
func TestRefused(t *testing.T) {
	changed := func(file []byte, at int, b byte) []byte {
		c := bytes.Clone(file)
		c[at] ^= b
		return c
	}
	lone := func(parts ...string) []byte {
		return formattest.Zip(zip.Deflate, append([]string{contentTypes, formattest.WorkbookTypes}, parts...)...)
	}
	for name, file := range map[string][]byte{
		"nothing":                     nil,
		"a program":                   []byte("\x7fELF\x02\x01\x01"),
		"a program of another system": []byte("MZ\x90\x00"),
		"a page":                      []byte("<!DOCTYPE html><script>alert(1)</script>"),
		"a page behind blanks":        []byte("\n  <html></html>"),
		"a drawing with scripts":      []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"),
		"a film":                      []byte(formattest.Box("ftyp", "isom\x00\x00\x00\x00mp42") + formattest.HEICMeta(100) + formattest.Box("mdat", "x")),
		"a picture of another codec":  []byte(formattest.Box("ftyp", "avif\x00\x00\x00\x00mif1avif") + formattest.HEICMeta(100) + formattest.Box("mdat", "x")),
		"boxes without their list":    []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.Box("mdat", "x")),
		"a picture behind the end":    []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.HEICMeta(500) + formattest.Box("mdat", "x")),
		"a list that is cut":          []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.Box("meta", "\x00\x00\x00\x00"+formattest.Box("iloc", "\x01\x00\x00\x00\x44"))),
		"a list longer than its box":  []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.Box("meta", "\x00\x00\x00\x00\x00\x00\x10\x00iloc")),
		"a box shorter than its head": []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + "\x00\x00\x00\x04meta"),
		"a sound":                     append([]byte("RIFF\x04\x00\x00\x00"), "WAVE"...),
		"a container without picture": formattest.RIFF("EXIF", "xx"),
		"more behind a container":     append(formattest.WebP(), 'x'),
		"more behind a picture":       append(formattest.PNG(), "PK\x03\x04"...),
		"a chunk that was changed":    changed(formattest.PNG(), len(formattest.PNG())/2, 1),
		"a picture without data":      []byte("\xff\xd8\xff\xd9"),
		"a page behind a document":    append(formattest.PDF(), "<script>"...),
		"a document's end elsewhere":  bytes.Replace(formattest.PDF(), []byte("startxref\n"), []byte("startxref\n9"), 1),
		"a shorter document than said": bytes.Replace(formattest.PDF(), []byte("1 0 obj<<"),
			[]byte("1 0 obj<</Linearized 1/L 9999>>endobj 4 0 obj<<"), 1),
		"only the words of a document": []byte("%PDF-1.7 is what this text is about"),
		"text of another encoding":     []byte("a,b\n\xe4,\xf6\n"),
		"a cut character":              []byte("a,b\nx,\xc3"),
		"control characters":           []byte("a,b\n\x00,1\n"),
		"records of other lengths":     []byte("a,b\n1\n"),
		"an open quote":                []byte("a,b\n\"1,2\n"),
		"blanks only":                  []byte(" \n\n"),
		"a record without end":         []byte("a,\"" + strings.Repeat("x", 2<<20) + "\"\n"),
		"an archive":                   formattest.Zip(zip.Deflate, "a.txt", "hello"),
		"a text document":              formattest.Zip(zip.Deflate, contentTypes, strings.ReplaceAll(formattest.WorkbookTypes, "spreadsheetml.sheet", "wordprocessingml.document"), "word/document.xml", "x"),
		"a workbook with programs":     lone("xl/vbaProject.bin", "x"),
		"a path out of the folder":     lone("../../etc/passwd", "x"),
		"a path from the root":         lone("/etc/passwd", "x"),
		"a path of another system":     lone(`xl\workbook.xml`, "x"),
		"a part twice":                 lone("xl/a.xml", "x", "xl/a.xml", "y"),
		"a bomb":                       formattest.Bomb(maxUnpacked>>20, "xl/a.xml", contentTypes, formattest.WorkbookTypes),
		"a list of types too long":     formattest.Zip(zip.Deflate, contentTypes, formattest.WorkbookTypes+string(make([]byte, maxTypes))),
		"a directory cut off":          append(lone()[:bytes.Index(lone(), []byte(zipCentral))], zipEnd+string(make([]byte, 18))...),
		"another name in it":           bytes.Replace(lone("xl/a.xml", "x"), []byte("xl/a.xml\x50\x4b\x05\x06"), []byte("xl/b.xml\x50\x4b\x05\x06"), 1),
		"more behind a workbook":       append(formattest.XLSX(), 'x'),
	} {
		var fault *Error
		got, err := Identify(bytes.NewReader(file), true)
		if !errors.As(err, &fault) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestTaken: what is unusual and yet whole.
func TestTaken(t *testing.T) {
	for name, file := range map[string][]byte{
		"a film behind a photograph":      append(formattest.JPEG(), formattest.Box("ftyp", "mp42")...),
		"fill bytes before a marker":      bytes.Replace(formattest.JPEG(), []byte("\xff\xdb"), []byte("\xff\xff\xff\xdb"), 1),
		"an image to the end of its file": []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00mif1heic") + formattest.HEICMeta(116) + "\x00\x00\x00\x00mdat and so on"),
		"a large box":                     []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.HEICMeta(116) + "\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x00\x12xx"),
		"a document with blanks behind":   append(formattest.PDF(), "\r\n\x00 \n"...),
		"a table with semicolons":         []byte("a;b\n\"1;2\";3,5\n"),
		"a table with tabs":               []byte("a\tb\n1\t2\n"),
		"a table with a mark":             []byte(byteOrderMark + "\"a\",b\r\n1,\"two\nlines\"\r\n"),
		"a table without a last break":    []byte("a,b\nä,ö"),
		"a stored workbook":               storedWorkbook(),
		"one that unpacks to megabytes":   formattest.Bomb(3, "xl/a.xml", contentTypes, formattest.WorkbookTypes, "xl/workbook.xml", "<workbook/>"),
	} {
		if got, err := Identify(iotest.HalfReader(bytes.NewReader(file)), true); err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// storedWorkbook has its sizes at the head of each part, as a writer that knows them puts them.
func storedWorkbook() []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, p := range [][2]string{{contentTypes, formattest.WorkbookTypes}, {"xl/workbook.xml", "<workbook/>"}} {
		into, _ := w.CreateRaw(&zip.FileHeader{Name: p[0], Method: zip.Store, CRC32: crc(p[1]), CompressedSize64: uint64(len(p[1])), UncompressedSize64: uint64(len(p[1]))})
		_, _ = io.WriteString(into, p[1])
	}
	_ = w.Close()
	return b.Bytes()
}

func FuzzIdentify(f *testing.F) {
	for _, file := range samples() {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := Identify(bytes.NewReader(file), true)
		again, other := Identify(iotest.OneByteReader(bytes.NewReader(file)), true)
		if got != again || (err == nil) != (other == nil) {
			t.Errorf("at once %s, %v; by bytes %s, %v", got, err, again, other)
		}
		var fault *Error
		if err != nil && !errors.As(err, &fault) {
			t.Errorf("%v is no fault of the file", err)
		}
	})
}

func crc(s string) uint32 { return crc32.ChecksumIEEE([]byte(s)) }
