package live

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Messages are compressed with permessage-deflate (RFC 7692) without context takeover in both directions: no message
// depends on an earlier one. Sessions can therefore share a compressed frame, and none needs memory for a window.

const (
	// deflateFrom is the size of the smallest frame that is compressed. Smaller messages hardly shrink.
	deflateFrom = 128
	// windowBits is the base-2 logarithm of the compression window. Some clients require this value to save memory. A
	// larger window would only improve the compression of large snapshots.
	windowBits = 12
	// flushed is the end of a flushed DEFLATE message. It is omitted on the wire (RFC 7692, section 7.2.1).
	flushed = "\x00\x00\xff\xff"
	// maxSpare limits the buffer that is kept for the next message.
	maxSpare = 64 << 10
)

// deflater is a compressor with its output buffer.
type deflater struct {
	writer *flate.Writer
	out    bytes.Buffer
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriterWindow(io.Discard, 1<<windowBits)
	if err != nil {
		panic("live: " + err.Error()) // windowBits is out of the library's range
	}
	return &deflater{writer: w}
}}

// deflate returns a compressed text frame, or the original frame if compression does not shorten it.
func deflate(plain []byte) []byte {
	z := deflaters.Get().(*deflater)
	header := frameHeader{}
	for !header.whole() {
		header.add(plain[header.have])
	}
	payload := plain[header.have:]
	z.out.Reset()
	z.writer.Reset(&z.out)
	_, _ = z.writer.Write(payload) // writes to a buffer do not fail
	_ = z.writer.Flush()
	frame := plain
	if packed := bytes.TrimSuffix(z.out.Bytes(), []byte(flushed)); len(packed) < len(payload) {
		frame = appendHeader(make([]byte, 0, headerBytes+len(packed)), finBit|rsv1Bit|opText, 0, len(packed))
		frame = append(frame, packed...)
	}
	if z.out.Cap() <= maxSpare {
		deflaters.Put(z)
	}
	return frame
}
