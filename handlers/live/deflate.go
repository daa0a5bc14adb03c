package live

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Messages are compressed with permessage-deflate (RFC 7692), without context takeover in either direction: no message
// depends on an earlier one. So sessions share a compressed frame, and none needs memory for a window.

const (
	// deflateFrom is the size of the smallest frame that is compressed. A smaller message hardly shrinks.
	deflateFrom = 128
	// windowBits is the base-2 logarithm of the window that messages are compressed with. Some clients ask for this one to
	// save memory. With a larger one, only large snapshots would shrink more.
	windowBits = 12
	// flushed ends a message that was compressed and flushed. It is left out on the wire (RFC 7692, 7.2.1).
	flushed = "\x00\x00\xff\xff"
	// maxSpare bounds the buffer that is kept for the next message.
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
		panic("live: " + err.Error()) // the library does not allow the window's size
	}
	return &deflater{writer: w}
}}

// deflate returns a text frame compressed, or the frame itself where that is not longer.
func deflate(plain []byte) []byte {
	z := deflaters.Get().(*deflater)
	header := frameHeader{}
	for !header.whole() {
		header.add(plain[header.have])
	}
	payload := plain[header.have:]
	z.out.Reset()
	z.writer.Reset(&z.out)
	_, _ = z.writer.Write(payload) // a buffer takes everything
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
