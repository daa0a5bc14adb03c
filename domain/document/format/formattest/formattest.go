// Package formattest generates files in the formats that package format recognizes, for tests.
package formattest

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

// ContentTypes is the name of the part of a workbook that lists the content types of all other parts.
const ContentTypes = "[Content_Types].xml"

const workbookType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"

// picture is large enough for several PNG chunks and JPEG restarts.
func picture() image.Image {
	m := image.NewRGBA(image.Rect(0, 0, 96, 64))
	for x := range 96 {
		for y := range 64 {
			m.Set(x, y, color.RGBA{uint8(x * y), uint8(x), uint8(y * 3), 255})
		}
	}
	return m
}

// PNG returns an image.
func PNG() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, picture())
	return b.Bytes()
}

// JPEG returns an image.
func JPEG() []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, picture(), nil)
	return b.Bytes()
}

// PDF returns a document with one empty page.
func PDF() []byte {
	body := "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"
	return []byte(body + "xref\n0 1\n0000000000 65535 f \ntrailer<</Size 4/Root 1 0 R>>\nstartxref\n" + fmt.Sprint(len(body)) + "\n%%EOF\n")
}

// RIFF returns a WebP container. Chunk names and contents alternate. Each content is padded to an even length.
func RIFF(chunks ...string) []byte {
	var body bytes.Buffer
	body.WriteString("WEBP")
	for i := 0; i < len(chunks); i += 2 {
		body.WriteString(chunks[i])
		_ = binary.Write(&body, binary.LittleEndian, uint32(len(chunks[i+1])))
		body.WriteString(chunks[i+1])
		if len(chunks[i+1])%2 == 1 {
			body.WriteByte(0)
		}
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(body.Len())), body.Bytes()...)
}

// WebP returns an image.
func WebP() []byte { return RIFF("VP8L", "\x2f\x00\x00\x00\x00\x88\x88\x08\x00", "EXIF", "xy") }

// Box returns a box of the ISO base media file format.
func Box(name, content string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(content)+8))) + name + content
}

// HEICMeta returns a meta box that declares two images. The second one ends at offset end.
func HEICMeta(end uint32) string {
	iloc := "\x01\x00\x00\x00\x44\x40\x00\x02"
	for _, extent := range [][2]uint32{{end - 100, 60}, {end - 40, 40}} {
		iloc += "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x10\x00\x01"
		iloc += string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, extent[0]-16), extent[1]))
	}
	return Box("meta", "\x00\x00\x00\x00"+Box("hdlr", "pict")+Box("iloc", iloc))
}

// HEIC returns a file with two images.
func HEIC() []byte {
	head := Box("ftyp", "mif1\x00\x00\x00\x00mif1heic")
	n := uint32(len(head) + len(HEICMeta(1000)) + 8 + 100)
	return []byte(head + HEICMeta(n) + Box("mdat", strings.Repeat("d", 100)))
}

// WorkbookTypes is the content of the ContentTypes part of a workbook.
const WorkbookTypes = `<Types><Override PartName="/xl/workbook.xml" ContentType="` + workbookType + `"/></Types>`

// Zip returns an archive. Part names and contents alternate.
func Zip(method uint16, parts ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	add(w, method, parts)
	_ = w.Close()
	return b.Bytes()
}

func add(w *zip.Writer, method uint16, parts []string) {
	for i := 0; i < len(parts); i += 2 {
		into, _ := w.CreateHeader(&zip.FileHeader{Name: parts[i], Method: method})
		_, _ = io.WriteString(into, parts[i+1])
	}
}

// Bomb returns an archive like Zip, with an additional last part that unpacks to mib MiB of zeros. It compresses only
// one MiB and repeats the result: compressing everything takes many seconds under the race detector.
func Bomb(mib int, name string, parts ...string) []byte {
	zeros, sum := make([]byte, 1<<20), crc32.NewIEEE()
	for range mib {
		_, _ = sum.Write(zeros)
	}
	var one, end bytes.Buffer
	f, _ := flate.NewWriter(&one, flate.DefaultCompression)
	_, _ = f.Write(zeros)
	_ = f.Flush() // to a byte boundary, so that the result can be repeated
	packed := bytes.Repeat(one.Bytes(), mib)
	f.Reset(&end)
	_ = f.Close()
	packed = append(packed, end.Bytes()...)

	var b bytes.Buffer
	w := zip.NewWriter(&b)
	add(w, zip.Deflate, parts)
	const sizesBehind = 0x8 // as if the writer did not know the sizes in advance
	into, _ := w.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, Flags: sizesBehind, CRC32: sum.Sum32(),
		CompressedSize64: uint64(len(packed)), UncompressedSize64: uint64(mib) << 20})
	_, _ = into.Write(packed)
	_ = w.Close()
	return b.Bytes()
}

// XLSX returns a workbook.
func XLSX() []byte {
	return Zip(zip.Deflate, ContentTypes, WorkbookTypes, "xl/workbook.xml", "<workbook/>", "xl/worksheets/sheet1.xml", strings.Repeat("<c>1</c>", 5000))
}
