package live

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"

	"github.com/olahol/melody"
)

// These are the errors of compressed messages.
var (
	errAmidMessage = &frameFault{melody.CloseProtocolError, "a message begins before the last fragment of another"}
	errNotDeflated = &frameFault{melody.CloseInvalidFramePayloadData, "a compressed message is not valid DEFLATE data"}
	errTooBig      = &frameFault{melody.CloseMessageTooBig, ""}
)

// inflater replaces a client's compressed messages by plain frames. The WebSocket library could decompress them, but
// it limits only their size on the wire. Other frames pass unchanged. If they use RSV1 where RFC 7692 forbids it, the
// library rejects them, because it has not negotiated the extension.
type inflater struct {
	raw   io.Reader
	limit int64 // maximum size of a message in bytes, compressed and decompressed

	header frameHeader
	left   uint64 // remaining bytes of mask and payload

	fragments bool // further fragments of a plain message will follow
	amid      bool // the last fragment of a compressed message has not arrived
	taken     bool // the frame belongs to a compressed message
	opcode    byte // of the compressed message
	packed    []byte
	begin     int // start of the frame in packed, including the mask

	out   []byte // bytes to return
	given int    // number of bytes of out already returned
	err   error  // returned after out
}

// Read implements io.Reader. It returns a *frameFault if the client violated the protocol.
func (z *inflater) Read(p []byte) (int, error) {
	for z.given == len(z.out) {
		if z.err != nil {
			return 0, z.err
		}
		if z.out, z.given = z.out[:0], 0; cap(z.out) > maxKept {
			z.out = nil
		}
		n, err := z.raw.Read(p)
		if fault := z.next(p[:n]); fault != nil {
			err = fault
		}
		z.err = err
	}
	n := copy(p, z.out[z.given:])
	z.given += n
	return n, nil
}

// maxKept limits the buffers that a connection keeps for the next message. Few requests are longer.
const maxKept = 4 << 10

// next processes the bytes that were read.
func (z *inflater) next(p []byte) *frameFault {
	for len(p) > 0 {
		if z.left > 0 {
			step := min(z.left, uint64(len(p)))
			z.left -= step
			if !z.taken {
				z.out = append(z.out, p[:step]...)
			} else {
				z.packed = append(z.packed, p[:step]...)
				if z.left == 0 {
					if fault := z.endFrame(); fault != nil {
						return fault
					}
				}
			}
			p = p[step:]
			continue
		}
		z.header.add(p[0])
		p = p[1:]
		if fault := z.header.fault(); fault != nil {
			return fault
		}
		if z.header.whole() {
			if fault := z.beginFrame(); fault != nil {
				return fault
			}
		}
	}
	return nil
}

// beginFrame processes a complete header. It passes the header on unless the frame belongs to a compressed message.
func (z *inflater) beginFrame() *frameFault {
	h := &z.header
	reserved := h.bytes[0] & rsvBits
	z.left, z.taken = h.rest(), false
	switch opcode := h.opcode(); {
	case opcode == opContinuation && z.amid:
		z.taken = reserved == 0 && h.masked()
	case opcode == opContinuation:
		z.fragments = z.fragments && !h.final()
	case opcode > opBinary:
	case z.amid:
		return errAmidMessage // the library has not seen that message
	case reserved == rsv1Bit:
		z.taken = !z.fragments && h.masked()
		z.opcode, z.packed = opcode, z.packed[:0]
	default:
		z.fragments = !h.final()
	}
	if !z.taken {
		z.out = append(z.out, h.bytes[:h.have]...)
		return nil
	}
	if h.size() > uint64(z.limit)-uint64(len(z.packed)) {
		return errTooBig
	}
	z.amid, z.begin = !h.final(), len(z.packed)
	return nil
}

// endFrame unmasks a frame of a compressed message. After the last frame, it passes on the decompressed message.
func (z *inflater) endFrame() *frameFault {
	mask, payload := [maskBytes]byte(z.packed[z.begin:]), z.packed[z.begin+maskBytes:]
	for i, b := range payload {
		z.packed[z.begin+i] = b ^ mask[i%maskBytes]
	}
	z.packed = z.packed[:len(z.packed)-maskBytes]
	if z.amid {
		return nil
	}
	text, fault := inflate(z.packed, z.limit)
	if fault != nil {
		return fault
	}
	z.out = appendHeader(z.out, finBit|z.opcode, maskBit, len(text))
	z.out = append(z.out, make([]byte, maskBytes)...)
	z.out = append(z.out, text...)
	if cap(z.packed) > maxKept {
		z.packed = nil
	}
	return nil
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// finalBlock is an empty block that ends a DEFLATE stream.
const finalBlock = "\x01\x00\x00\xff\xff"

// inflate decompresses a message to at most limit bytes. A client may mark a block as final; only the empty block of
// RFC 7692, section 7.2.3.4, may follow it.
func inflate(packed []byte, limit int64) ([]byte, *frameFault) {
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	in := bytes.NewReader(append(packed[:len(packed):len(packed)], flushed+finalBlock...))
	if err := r.(flate.Resetter).Reset(in, nil); err != nil {
		return nil, errNotDeflated
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case int64(len(text)) > limit:
		return nil, errTooBig
	case err != nil || in.Len() > len("\x00"+flushed+finalBlock):
		return nil, errNotDeflated
	}
	return text, nil
}
