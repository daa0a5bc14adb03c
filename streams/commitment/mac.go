package commitment

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
)

const blockSize = sha256.BlockSize

// The pads of RFC 2104.
var (
	innerPad = bytes.Repeat([]byte{0x36}, blockSize)
	outerPad = bytes.Repeat([]byte{0x5c}, blockSize)
)

// mac computes HMAC-SHA-256 (RFC 2104) with a new key for each message. Every unit has its own key, and crypto/hmac
// allocates three hashes for each key, which takes twice the time. The caller appends the message to buf between begin and
// end. Its zero value is ready for use.
type mac struct {
	buf   []byte
	outer [blockSize + sha256.Size]byte
}

func (m *mac) begin(key *[KeySize]byte) {
	if cap(m.buf) == 0 {
		m.buf = make([]byte, 0, 4096)
	}
	m.buf = append(m.buf[:0], innerPad...)
	subtle.XORBytes(m.buf[:KeySize], m.buf[:KeySize], key[:])
	copy(m.outer[:], outerPad)
	subtle.XORBytes(m.outer[:KeySize], m.outer[:KeySize], key[:])
}

func (m *mac) end() Hash {
	inner := sha256.Sum256(m.buf)
	copy(m.outer[blockSize:], inner[:])
	return sha256.Sum256(m.outer[:])
}
