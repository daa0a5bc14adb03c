package rest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// compressible is the size above which a response is compressed. A smaller one fits into one packet anyway.
const compressible = 1024

// compressor is a reusable writer with its buffer.
type compressor struct {
	writer *gzip.Writer
	out    bytes.Buffer
}

var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // BestSpeed is a valid level
	}
	return &compressor{writer: w}
}}

// compressed returns b compressed. The result is valid until release is called.
func compressed(b []byte) (out []byte, release func()) {
	z := compressors.Get().(*compressor)
	z.out.Reset()
	z.writer.Reset(&z.out)
	_, _ = z.writer.Write(b) // writes to memory do not fail
	_ = z.writer.Close()
	return z.out.Bytes(), func() { compressors.Put(z) }
}

// takesGzip reports whether the client accepts gzip. A quality of 0 forbids it.
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

// Blob responds with b and its length. It compresses b if b is large and the client accepts gzip.
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
	if len(b) >= shortAnswer || status == http.StatusRequestEntityTooLarge { // 413 is sent while the body is arriving
		h[echo.HeaderContentLength] = []string{strconv.Itoa(len(b))}
	}
	return r.echoContext.Blob(status, contentType, b)
}
