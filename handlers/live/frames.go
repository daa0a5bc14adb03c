package live

import (
	"sync"
	"unicode/utf8"

	"github.com/olahol/melody"
)

// The parts of a frame's first two bytes.
const (
	finBit     = 0x80
	rsv1Bit    = 0x40
	rsvBits    = 0x70
	opcodeBits = 0x0f

	maskBit    = 0x80
	lengthBits = 0x7f
	length16   = 126 // the length follows, in two bytes
	length64   = 127 // in eight bytes
)

const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8

	maskBytes   = 4
	codeBytes   = 2
	headerBytes = 10  // of the longest header, without its mask
	maxControl  = 125 // bytes of a control frame's payload
)

// frame is a queued frame. Sessions share it, so it must not change.
type frame struct {
	plain []byte

	packing sync.Once
	packed  []byte // plain compressed; nil until a session wants it
}

// wire returns the bytes to write to a session. The writer of the first session that wants the frame compressed compresses
// it for all sessions; it holds no lock of the hub.
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

// appendHeader appends a frame's first byte and its length, with or without the mask bit.
func appendHeader(b []byte, first, mask byte, n int) []byte {
	switch b = append(b, first); {
	case n < length16:
		return append(b, mask|byte(n))
	case n < 1<<16:
		return append(b, mask|length16, byte(n>>8), byte(n))
	}
	return append(b, mask|length64, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// closeFrame returns an unmasked close frame. The payload is that of melody.FormatCloseMessage, at most 125 bytes.
func closeFrame(payload []byte) []byte {
	return append([]byte{finBit | opClose, byte(len(payload))}, payload...)
}

// isText reports whether a frame is a text frame that is not compressed.
func isText(frame []byte) bool { return frame[0] == finBit|opText }

// isClose reports whether a frame is a close frame.
func isClose(frame []byte) bool { return frame[0] == finBit|opClose }

// isTooBig reports whether a frame is a close frame with the code 1009, which the WebSocket library writes about a message
// that exceeds its limit.
func isTooBig(frame []byte) bool {
	return isClose(frame) && len(frame) >= 4 && frame[2] == 1009>>8 && frame[3] == 1009&0xff
}

// frameFault is a fault of a client's frames, and the code that the connection is closed with.
type frameFault struct {
	code   int
	reason string
}

// Error returns the reason.
func (f *frameFault) Error() string { return f.reason }

// The faults that the WebSocket library lets pass (RFC 6455, 5.2 and 5.5.1), or closes with another code (8.1). It takes a
// close frame of one byte for one without a code, ends without a close frame at a length that is negative to it, and
// calls a reason that is not UTF-8 a fault of the protocol.
var (
	errCloseOfOneByte = &frameFault{melody.CloseProtocolError, "a close frame with one byte"}
	errNegativeLength = &frameFault{melody.CloseProtocolError, "a length with its top bit set"}
	errReasonNotText  = &frameFault{melody.CloseInvalidFramePayloadData, "the reason of a close frame is not valid UTF-8"}
)

// frameHeader holds the bytes of a frame's header that were read so far, without the mask.
type frameHeader struct {
	bytes [headerBytes]byte
	have  int
}

// add appends a byte. It begins a new header if the present one is complete.
func (h *frameHeader) add(b byte) {
	if h.whole() {
		h.have = 0
	}
	h.bytes[h.have] = b
	h.have++
}

// whole reports whether the header is complete.
func (h *frameHeader) whole() bool { return h.have >= 2 && h.have == 2+h.extended() }

// extended returns the number of bytes of the extended payload length (RFC 6455, 5.2).
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

// size returns the length of the payload.
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

// rest returns the number of bytes of mask and payload. The library ends the connection of a client that does not mask.
func (h *frameHeader) rest() uint64 {
	if h.masked() {
		return maskBytes + h.size()
	}
	return h.size()
}

// fault returns the first violation in the bytes read so far.
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

// frameScan follows the headers of a client's frames through the bytes that are read, however they are cut.
type frameScan struct {
	header frameHeader
	skip   uint64 // bytes of mask and payload that are still to come

	closing bool // the frame is a close frame with a reason, of which mask and payload are kept
	kept    [maskBytes + maxControl]byte
	keeps   int
}

// next scans what was read next. It returns how many of the bytes come before the first fault.
func (f *frameScan) next(p []byte) (good int, fault *frameFault) {
	for good < len(p) {
		if f.skip > 0 {
			step := min(f.skip, uint64(len(p)-good))
			f.skip -= step
			if f.closing {
				f.keeps += copy(f.kept[f.keeps:], p[good:good+int(step)])
				if f.skip == 0 && !f.reasonIsText() { // the library never gets the frame whole
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

// reasonIsText unmasks a close frame that is whole, and looks at its reason.
func (f *frameScan) reasonIsText() bool {
	payload := f.kept[maskBytes:f.keeps]
	for i := range payload {
		payload[i] ^= f.kept[i%maskBytes]
	}
	return utf8.Valid(payload[codeBytes:])
}

// finish goes on to the mask and the payload if the header is whole.
func (f *frameScan) finish() {
	if h := &f.header; h.whole() {
		f.skip, f.keeps = h.rest(), 0
		f.closing = h.opcode() == opClose && h.masked() && h.size() > codeBytes && h.size() <= maxControl
	}
}
