package commitment

import "crypto/sha256"

const blockSize = sha256.BlockSize

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
	m.buf = m.buf[:blockSize]
	for i := range blockSize {
		k := byte(0)
		if i < len(key) {
			k = key[i]
		}
		m.buf[i], m.outer[i] = k^0x36, k^0x5c
	}
}

func (m *mac) end() Hash {
	inner := sha256.Sum256(m.buf)
	copy(m.outer[blockSize:], inner[:])
	return sha256.Sum256(m.outer[:])
}
