package live

import (
	"sync"
	"unicode/utf8"

	"github.com/olahol/melody"
)

// These are the bits in the first two bytes of a frame, and special lengths.
const (
	finBit     = 0x80
	rsv1Bit    = 0x40
	rsvBits    = 0x70
	opcodeBits = 0x0f

	maskBit    = 0x80
	lengthBits = 0x7f
	length16   = 126 // a 2-byte length follows
	length64   = 127 // an 8-byte length follows
)

const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8

	maskBytes   = 4
	codeBytes   = 2
	headerBytes = 10  // size of the longest header without a mask
	maxControl  = 125 // maximum payload of a control frame
)

// frame is a queued frame. Sessions share it, so it must not be modified.
type frame struct {
	plain []byte

	packing sync.Once
	packed  []byte // compressed form of plain; nil until a session needs it
}

// wire returns the bytes to write to a session. The first writer that needs the compressed form creates it for all
// sessions, without holding a lock of the hub.
func (f *frame) wire(compressed bool) []byte {
	if !compressed || len(f.plain) < deflateFrom || !isText(f.plain) {
		return f.plain
	}
	f.packing.Do(func() { f.packed = deflate(f.plain) })
	return f.packed
}

// textFrame returns an unmasked text frame.
func textFrame(payload []byte) *frame {
	b := appendHeader(make([]byte, 0, headerBytes+len(payload)), finBit|opText, 0, len(payload))
	return &frame{plain: append(b, payload...)}
}

// appendHeader appends a frame's first byte and payload length, with or without the mask bit.
func appendHeader(b []byte, first, mask byte, n int) []byte {
	switch b = append(b, first); {
	case n < length16:
		return append(b, mask|byte(n))
	case n < 1<<16:
		return append(b, mask|length16, byte(n>>8), byte(n))
	}
	return append(b, mask|length64, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// closeFrame returns an unmasked close frame. payload is a result of melody.FormatCloseMessage, at most 125 bytes.
func closeFrame(payload []byte) []byte {
	return append([]byte{finBit | opClose, byte(len(payload))}, payload...)
}

// isText reports whether a frame is an uncompressed text frame.
func isText(frame []byte) bool { return frame[0] == finBit|opText }

// isClose reports whether a frame is a close frame.
func isClose(frame []byte) bool { return frame[0] == finBit|opClose }

// isTooBig reports whether a frame is a close frame with the code 1009, which the WebSocket library writes for a
// message over its limit.
func isTooBig(frame []byte) bool {
	return isClose(frame) && len(frame) >= 4 && frame[2] == 1009>>8 && frame[3] == 1009&0xff
}

// frameFault is an error in a client's frames, with the code for the close frame.
type frameFault struct {
	code   int
	reason string
}

// Error returns the reason.
func (f *frameFault) Error() string { return f.reason }

// These are errors that the WebSocket library does not detect (RFC 6455, sections 5.2 and 5.5.1) or closes with
// another code (section 8.1). It accepts a close frame with a 1-byte payload as one without a code, ends without a
// close frame at a length with the top bit set, and reports an invalid UTF-8 reason as a protocol error.
var (
	errCloseOfOneByte = &frameFault{melody.CloseProtocolError, "a close frame with one byte"}
	errNegativeLength = &frameFault{melody.CloseProtocolError, "a length with its top bit set"}
	errReasonNotText  = &frameFault{melody.CloseInvalidFramePayloadData, "the reason of a close frame is not valid UTF-8"}
)

// frameHeader holds the bytes of a frame header that were read so far, without the mask.
type frameHeader struct {
	bytes [headerBytes]byte
	have  int
}

// add appends a byte. If the header is complete, it begins a new one.
func (h *frameHeader) add(b byte) {
	if h.whole() {
		h.have = 0
	}
	h.bytes[h.have] = b
	h.have++
}

// whole reports whether the header is complete.
func (h *frameHeader) whole() bool { return h.have >= 2 && h.have == 2+h.extended() }

// extended returns the number of bytes of the extended payload length (RFC 6455, section 5.2).
func (h *frameHeader) extended() int {
	switch h.bytes[1] & lengthBits {
	case length16:
		return 2
	case length64:
		return 8
	}
	return 0
}

func (h *frameHeader) opcode() byte { return h.bytes[0] & opcodeBits }
func (h *frameHeader) final() bool  { return h.bytes[0]&finBit != 0 }
func (h *frameHeader) masked() bool { return h.bytes[1]&maskBit != 0 }

// size returns the payload length.
func (h *frameHeader) size() uint64 {
	extended := h.extended()
	if extended == 0 {
		return uint64(h.bytes[1] & lengthBits)
	}
	size := uint64(0)
	for _, b := range h.bytes[2 : 2+extended] {
		size = size<<8 | uint64(b)
	}
	return size
}

// rest returns the number of bytes of mask and payload. The library ends the connection of a client that does not
// mask.
func (h *frameHeader) rest() uint64 {
	if h.masked() {
		return maskBytes + h.size()
	}
	return h.size()
}

// fault returns the first error in the bytes read so far.
func (h *frameHeader) fault() *frameFault {
	length := h.bytes[1] & lengthBits
	switch {
	case h.have == 2 && h.opcode() == opClose && length == 1:
		return errCloseOfOneByte
	case h.have == 3 && length == length64 && h.bytes[2]&0x80 != 0:
		return errNegativeLength
	}
	return nil
}

// frameScan tracks the frame headers in a client's input, for pieces of any size.
type frameScan struct {
	header frameHeader
	skip   uint64 // remaining bytes of mask and payload

	closing bool // a close frame with a reason; payload collects its mask and payload
	payload [maskBytes + maxControl]byte
	keeps   int
}

// next scans the next bytes. It returns the number of bytes before the first error.
func (f *frameScan) next(p []byte) (good int, fault *frameFault) {
	for good < len(p) {
		if f.skip > 0 {
			step := min(f.skip, uint64(len(p)-good))
			f.skip -= step
			if f.closing {
				f.keeps += copy(f.payload[f.keeps:], p[good:good+int(step)])
				if f.skip == 0 && !f.reasonIsText() { // hold back a byte, so that the library does not get the complete frame
					return good + int(step) - 1, errReasonNotText
				}
			}
			good += int(step)
			continue
		}
		f.header.add(p[good])
		if fault = f.header.fault(); fault != nil {
			return good, fault
		}
		good++
		f.finish()
	}
	return good, nil
}

// reasonIsText unmasks a complete close frame and reports whether its reason is valid UTF-8.
func (f *frameScan) reasonIsText() bool {
	payload := f.payload[maskBytes:f.keeps]
	for i := range payload {
		payload[i] ^= f.payload[i%maskBytes]
	}
	return utf8.Valid(payload[codeBytes:])
}

// finish proceeds to mask and payload if the header is complete.
func (f *frameScan) finish() {
	if h := &f.header; h.whole() {
		f.skip, f.keeps = h.rest(), 0
		f.closing = h.opcode() == opClose && h.masked() && h.size() > codeBytes && h.size() <= maxControl
	}
}
