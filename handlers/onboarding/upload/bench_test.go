package upload_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
)

// large are whole files of nearly the greatest size, of kinds that are read in different ways.
func large() map[string]string {
	jpeg, png := formattest.JPEG(), string(formattest.PNG())
	scan := bytes.Repeat([]byte("\x12\x34\xff\x00scan"), 19*mib/8)
	chunk := "tEXt" + strings.Repeat("x", 8<<10)
	chunk = fmt.Sprintf("\x00\x00\x20\x00%s%s", chunk, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk))))
	end := strings.Index(png, "IEND") - 4
	var parts []string
	for n := range 200 {
		parts = append(parts, fmt.Sprintf("xl/media/%d.bin", n), strings.Repeat(fmt.Sprint(n), 64<<10))
	}
	return map[string]string{"pdf": padded(20 * mib), "jpeg": string(jpeg[:len(jpeg)-2]) + string(scan) + "\xff\xd9",
		"png": png[:end] + strings.Repeat(chunk, 2000) + png[end:],
		// Many parts, each of them packed by itself.
		"xlsx": workbook(parts...)}
}

// TestAnUploadMakesLittleGarbage uploads large files one after the other. What is allocated for each is next to nothing beside
// its size: a node's collector waits long, and all that waits for it is memory of the process.
func TestAnUploadMakesLittleGarbage(t *testing.T) {
	const limit = 3 * mib / 4 // for the client and the server; the last 128 KiB of a document are looked at together
	for name, content := range large() {
		s := serve(t, nil)
		contentType, content := body("b", field("category", "bank_statement"), file("a", content))
		// The least of several: the first has buffers to make, and the collector, or another goroutine, may come in between.
		least := uint64(math.MaxUint64)
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if status, answer := s.send(t, contentType, bytes.NewReader(content)); status != http.StatusCreated {
				t.Fatal(name, status, answer)
			}
			<-s.done
			runtime.ReadMemStats(&after)
			if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= limit {
				break
			}
		}
		if least > limit {
			t.Errorf("%s: %d KiB are allocated for a file of %d KiB", name, least>>10, len(content)>>10)
		}
	}
}

// BenchmarkUpload uploads files of the greatest size over HTTP. What it allocates for each is bounded by TestAnUploadMakesLittleGarbage.
func BenchmarkUpload(b *testing.B) {
	for name, content := range large() {
		b.Run(name, func(b *testing.B) {
			s := serve(b, nil)
			contentType, content := body("b", field("category", "bank_statement"), file("a", content))
			b.SetBytes(20 * mib)
			b.ReportAllocs()
			for b.Loop() {
				if status, answer := s.send(b, contentType, bytes.NewReader(content)); status != http.StatusCreated {
					b.Fatal(status, answer)
				}
				<-s.done
			}
		})
	}
}
