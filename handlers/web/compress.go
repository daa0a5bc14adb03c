package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// compressible is the size above which an answer is compressed for who asks: below it, the answer fits into a packet
// anyway.
const compressible = 1024

// compressor is a writer with its room, which serve many answers.
type compressor struct {
	writer *gzip.Writer
	out    bytes.Buffer
}

var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is such a level
	}
	return &compressor{writer: w}
}}

// compressed returns what b is when it is compressed. It is good until release is called.
func compressed(b []byte) (out []byte, release func()) {
	z := compressors.Get().(*compressor)
	z.out.Reset()
	z.writer.Reset(&z.out)
	_, _ = z.writer.Write(b) // into memory, which does not fail
	_ = z.writer.Close()
	return z.out.Bytes(), func() { compressors.Put(z) }
}

// takesGzip reports whether the client asks for gzip. A quality of 0 says that it must not be.
func takesGzip(r *http.Request) bool {
	for _, line := range r.Header[echo.HeaderAcceptEncoding] {
		for coding := range strings.SplitSeq(line, ",") {
			name, parameter, _ := strings.Cut(coding, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				return !refused(parameter)
			}
		}
	}
	return false
}

func refused(parameter string) bool {
	name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return strings.EqualFold(strings.TrimSpace(name), "q") && (err != nil || q <= 0)
}

// Blob answers with bytes in one piece of a known length, compressed if they are many and the client asks for it.
func (r *request) Blob(status int, contentType string, b []byte) error {
	h := r.Response().Header()
	if len(b) > compressible {
		h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		if takesGzip(r.Request()) {
			packed, release := compressed(b)
			defer release()
			h[echo.HeaderContentEncoding] = []string{"gzip"}
			b = packed
		}
	}
	if len(b) >= shortAnswer || status == http.StatusRequestEntityTooLarge { // which is told while more of the body comes in
		h[echo.HeaderContentLength] = []string{strconv.Itoa(len(b))}
	}
	return r.Context.Blob(status, contentType, b)
}
