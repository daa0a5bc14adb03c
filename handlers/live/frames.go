package live

import (
	"unicode/utf8"

	"github.com/olahol/melody"
)

// textFrame returns an unmasked text frame.
func textFrame(payload []byte) []byte {
	n := len(payload)
	b := make([]byte, 0, n+10)
	switch b = append(b, 0x81); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = append(b, 126, byte(n>>8), byte(n))
	default:
		b = append(b, 127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, payload...)
}

// closeFrame returns an unmasked close frame. The payload is that of melody.FormatCloseMessage, at most 125 bytes.
func closeFrame(payload []byte) []byte { return append([]byte{0x88, byte(len(payload))}, payload...) }

// isText reports whether a frame is a text frame.
func isText(frame []byte) bool { return frame[0] == 0x81 }

// isClose reports whether a frame is a close frame.
func isClose(frame []byte) bool { return frame[0] == 0x88 }

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

const (
	opClose    = 0x8
	maskBytes  = 4
	codeBytes  = 2
	maxControl = 125 // bytes of a control frame's payload
)

// frameScan follows the headers of a client's frames through the bytes that are read, however they are cut.
type frameScan struct {
	header [10]byte // of a frame, without its mask
	have   int      // bytes of it so far
	skip   uint64   // bytes of mask and payload that are still to come

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
		f.header[f.have] = p[good]
		f.have++
		if fault = f.fault(); fault != nil {
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

func (f *frameScan) fault() *frameFault {
	length := f.header[1] & 0x7f
	switch {
	case f.have == 2 && f.header[0]&0xf == opClose && length == 1:
		return errCloseOfOneByte
	case f.have == 3 && length == 127 && f.header[2]&0x80 != 0:
		return errNegativeLength
	}
	return nil
}

// finish goes on to the mask and the payload if the header is whole.
func (f *frameScan) finish() {
	if f.have < 2 {
		return
	}
	length, extended := uint64(f.header[1]&0x7f), 0
	f.closing, f.keeps = f.header[0]&0xf == opClose && f.header[1]&0x80 != 0 && length > codeBytes && length <= maxControl, 0
	switch length {
	case 126:
		extended = 2
	case 127:
		extended = 8
	}
	if f.have < 2+extended {
		return
	}
	if extended > 0 {
		length = 0
		for _, b := range f.header[2 : 2+extended] {
			length = length<<8 | uint64(b)
		}
	}
	if f.header[1]&0x80 != 0 {
		length += maskBytes // without one the library ends the connection
	}
	f.skip, f.have = length, 0
}
