package format

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
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
		"a program by its type":        formattest.Zip(zip.Deflate, contentTypes, strings.Replace(formattest.WorkbookTypes, "</Types>", `<Override PartName="/xl/x.bin" ContentType="application/vnd.ms-office.vbaProject"/></Types>`, 1), "xl/x.bin", "x"),
		"another end in its comment":   commented(lone(), zipEnd+string(make([]byte, 18))),
		"fewer parts than there are":   ended(lone(), 10, "\x00\x00"),
		"a shorter directory":          ended(lone(), 12, "\x10\x00\x00\x00"),
		"another disk":                 ended(lone(), 4, "\x01\x00"),
		"its directory nowhere":        ended(lone(), 16, "\xff\xff\xff\xff"),
		"a directory of other parts":   wide(0),
		"a locator that leads away":    wide(1),
		"a hidden locator":             hiddenLocator(),
		"packed in two ways":           listedAs(10, "\x00\x00"),
		"listed as encrypted":          listedAs(8, "\x09\x00"),
		"two names":                    renamed("xl/evil.bin"),
		"a picture without a frame":    []byte("\xff\xd8\xff\xda\x00\x02\xff\xd9"),
		"a program behind a picture":   append(formattest.JPEG(), "MZ\x90\x00"...),
		"a page behind a screenshot":   append(formattest.PNG(), "<SCRIPT>alert(1)</SCRIPT>"...),
		"a page of a server behind":    append(formattest.PNG(), "<?php system($_GET[0]); ?>"...),
		"an archive behind a picture":  append(formattest.PNG(), append([]byte("camera"), formattest.XLSX()...)...),
		"a page behind a photograph":   append(formattest.JPEG(), "\r\n<html>"...),
		"an archive behind one":        append(formattest.JPEG(), formattest.XLSX()...),
		"an archive that begins later": append(formattest.JPEG(), append([]byte("camera"), formattest.XLSX()...)...),
		"a document and an archive":    commented(append([]byte("%PDF-1.4\n"), formattest.XLSX()...), "\nstartxref\n9\n%%EOF\n"),
		"a picture of no bytes":        pngOf(1, ""),
		"a picture of no size":         pngOf(0, "\x78\x9c"),
		"a program as its data":        pngOf(1, "MZ\x90\x00"),
		"a program as an image":        formattest.RIFF("VP8L", "MZ\x90\x00\x03\x00\x00\x00\x04\x00"),
		"another as a frame":           formattest.RIFF("VP8 ", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00"),
		"an image of no bytes":         formattest.RIFF("VP8L", ""),
		// Read one by one, these take seconds for each list, and a file has room for hundreds of lists.
		"very many places of no bytes": []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.Box("meta", "\x00\x00\x00\x00"+formattest.Box("iloc", "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x02")) + formattest.Box("mdat", "x")),
		"pictures in too many places":  []byte(formattest.Box("ftyp", "heic\x00\x00\x00\x00heic") + formattest.Box("meta", "\x00\x00\x00\x00"+strings.Repeat(formattest.Box("iloc", "\x00\x00\x00\x00\x44\x40\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x10\x00\x00\x00\x01"), 2)) + formattest.Box("mdat", "x")),
	} {
		var fault *Error
		got, err := Identify(bytes.NewReader(file), true)
		if !errors.As(err, &fault) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// commented gives an archive a comment.
func commented(file []byte, comment string) []byte {
	file = bytes.Clone(file)
	binary.LittleEndian.PutUint16(file[len(file)-2:], uint16(len(comment)))
	return append(file, comment...)
}

// ended changes the last record of an archive at a place.
func ended(file []byte, at int, to string) []byte {
	file = bytes.Clone(file)
	copy(file[bytes.LastIndex(file, []byte(zipEnd))+at:], to)
	return file
}

// listedAs is a workbook whose directory says something else of its first part than the part itself.
func listedAs(at int, to string) []byte {
	file := formattest.XLSX()
	copy(file[bytes.Index(file, []byte(zipCentral))+at:], to)
	return file
}

// wide is a workbook with the records of a large one. They lead this far past its directory, first the one and then the other;
// -1 is nowhere else.
func wide(wrong int) []byte {
	file := formattest.XLSX()
	at := bytes.LastIndex(file, []byte(zipEnd))
	begin := binary.LittleEndian.Uint32(file[at+16:])
	places := []uint64{uint64(begin), uint64(at)}
	if wrong >= 0 {
		places[wrong]++
	}
	end := binary.LittleEndian.AppendUint64([]byte(zipEnd64), 44)
	end = append(end, "\x2d\x00\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	for _, n := range []uint64{3, 3, uint64(at) - uint64(begin), places[0]} {
		end = binary.LittleEndian.AppendUint64(end, n)
	}
	end = binary.LittleEndian.AppendUint64(append(end, zipLocator64+"\x00\x00\x00\x00"...), places[1])
	end = append(end, "\x01\x00\x00\x00"+zipEnd+"\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
	return append(file[:at], end...)
}

// hiddenLocator is a workbook whose last entry ends as a locator of a wider record would.
func hiddenLocator() []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, h := range []*zip.FileHeader{{Name: contentTypes, Method: zip.Deflate}, {Name: "xl/workbook.xml", Comment: zipLocator64 + string(make([]byte, 16))}} {
		h.Method = zip.Deflate
		into, _ := w.CreateHeader(h)
		_, _ = io.WriteString(into, formattest.WorkbookTypes)
	}
	_ = w.Close()
	return b.Bytes()
}

// renamed is a workbook with a part that has another name for some readers.
func renamed(other string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{contentTypes, "xl/a.bin"} {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if name != contentTypes {
			h.Extra = append(binary.LittleEndian.AppendUint16([]byte("up"), uint16(5+len(other))), "\x01\x00\x00\x00\x00"+other...)
		}
		into, _ := w.CreateHeader(h)
		_, _ = io.WriteString(into, formattest.WorkbookTypes)
	}
	_ = w.Close()
	return b.Bytes()
}

// pngOf has the chunks of a picture, with this as its data.
func pngOf(width byte, content string) []byte {
	chunk := func(name, content string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(content)))) + name + content + string(binary.BigEndian.AppendUint32(nil, crc(name+content)))
	}
	return []byte(pngSignature + chunk("IHDR", "\x00\x00\x00"+string([]byte{width})+"\x00\x00\x00\x01\x08\x00\x00\x00\x00") + chunk("IDAT", content) + chunk("IEND", ""))
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
		"a table with quoted semicolons":  []byte("\"amount; EUR; gross\",day\n5,2026-01-01\n"),
		"a table with a column ftype":     []byte("day,ftype\n2026-01-01,maker\n"),
		"a table with a mark":             []byte(byteOrderMark + "\"a\",b\r\n1,\"two\nlines\"\r\n"),
		"a table without a last break":    []byte("a,b\nä,ö"),
		"a stored workbook":               storedWorkbook(),
		"a frame with losses":             formattest.RIFF("VP8 ", "\x30\x01\x00\x9d\x01\x2a\x01\x00\x01\x00\x02\x00"),
		"a wide workbook":                 wide(-1),
		"a workbook with a comment":       commented(formattest.XLSX(), "made by hand"),
		"a second name that is the same":  renamed("xl/a.bin"),
		"a box that is < long":            append(formattest.JPEG(), formattest.Box("ftyp", "mp42"+strings.Repeat("\x00", 0x3c-12))...),
		"what an editor writes behind":    append(formattest.JPEG(), "<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta/>"...),
		"a cut screenshot":                append(formattest.PNG(), formattest.PNG()[len(formattest.PNG())/2:]...),
		"a note behind a screenshot":      append(formattest.PNG(), "\x00\x00\x11\x0c\x07\x00\x00\x00Capture{}SEFH\x65\x00\x00\x00SEFT"...),
		"a photograph behind another":     append(formattest.JPEG(), formattest.JPEG()...),
		"one that unpacks to megabytes":   formattest.Bomb(3, "xl/a.xml", contentTypes, formattest.WorkbookTypes, "xl/workbook.xml", "<workbook/>"),
	} {
		if got, err := Identify(iotest.HalfReader(bytes.NewReader(file)), true); err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestDocumentsBehindBlanks: a document that a server passed on with a mark or blank lines before it is one, and no table.
func TestDocumentsBehindBlanks(t *testing.T) {
	for _, before := range []string{byteOrderMark, "\r\n \n", byteOrderMark + "\n"} {
		for _, tables := range []bool{false, true} {
			if got, err := Identify(bytes.NewReader(append([]byte(before), formattest.PDF()...)), tables); got != PDF || err != nil {
				t.Errorf("behind %q, tables taken: %t: %q, %v", before, tables, got, err)
			}
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

// held reads to the end of a file, and tells how much memory is held then.
type held struct {
	io.Reader
	bytes uint64
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if err == io.EOF { //nolint:errorlint // of a bytes.Reader, bare
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		h.bytes = m.HeapAlloc
	}
	return n, err
}

// TestLongNamesAreNotHeld: a workbook of very many parts with long names is read in little memory. Many may come at once.
func TestLongNamesAreNotHeld(t *testing.T) {
	all := []string{contentTypes, formattest.WorkbookTypes}
	file := formattest.Zip(zip.Deflate, append(all, manyParts(maxParts-1, strings.Repeat("long", 120))...)...)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h := &held{Reader: bytes.NewReader(file)}
	if got, err := Identify(h, true); got != XLSX || err != nil {
		t.Fatalf("%s, %v", got, err)
	}
	if more := int64(h.bytes) - int64(before.HeapAlloc); more > 4<<20 {
		t.Errorf("%d bytes are held at the end of a file of %d", more, len(file))
	}
	if got, err := Identify(bytes.NewReader(formattest.Zip(zip.Deflate, append(all, manyParts(maxParts, "")...)...)), true); err == nil {
		t.Errorf("one part too many: %s", got)
	}
}

// manyParts are so many parts with nothing in them, whose names begin so.
func manyParts(n int, name string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("xl/", name, i), "")
	}
	return all
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
