package upload_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
)

// BenchmarkUpload uploads files of the greatest size over HTTP. What it allocates for each is less than a tenth of the file.
func BenchmarkUpload(b *testing.B) {
	jpeg := formattest.JPEG()
	large := append(bytes.Clone(jpeg[:len(jpeg)-2]), bytes.Repeat([]byte("\x12\x34\xff\x00scan"), (20*mib-len(jpeg))/8)...)
	for name, content := range map[string]string{"pdf": padded(20 * mib), "jpeg": string(append(large, 0xff, 0xd9))} {
		b.Run(name, func(b *testing.B) {
			s := serve(b, nil)
			contentType, content := body("b", file("a", content))
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
