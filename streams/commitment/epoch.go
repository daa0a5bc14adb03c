package commitment

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// KeySize is the size of an epoch key and of a venue secret in bytes.
const KeySize = 32

// EpochKey is the key of the salts of epoch.Length sequences of one journal. It lets its holder confirm guesses of records, so
// handing one over is an act that the log records. It prints as a placeholder.
type EpochKey struct{ key [KeySize]byte }

const epochInfo = "perpetua commitment epoch\x00"

// NewEpochKey derives the key of an epoch from the venue's secret of the generation in force.
func NewEpochKey(secret []byte, journal scalar.ID, epoch int64) (*EpochKey, error) {
	if len(secret) != KeySize || epoch < 0 {
		return nil, fmt.Errorf("commitment: no epoch key for epoch %d and a secret of %d bytes", epoch, len(secret))
	}
	info := binary.BigEndian.AppendUint64(append([]byte(epochInfo), journal[:]...), uint64(epoch))
	b, err := hkdf.Key(sha256.New, secret, nil, string(info), KeySize)
	if err != nil {
		return nil, fmt.Errorf("commitment: derive an epoch key: %w", err)
	}
	return &EpochKey{[KeySize]byte(b)}, nil
}

// ParseEpochKey returns the epoch key with these bytes, as Bytes returned them.
func ParseEpochKey(b []byte) (*EpochKey, error) {
	if len(b) != KeySize {
		return nil, fmt.Errorf("commitment: an epoch key has %d bytes, not %d", KeySize, len(b))
	}
	return &EpochKey{[KeySize]byte(b)}, nil
}

// Bytes returns the secret bytes of the key.
func (k *EpochKey) Bytes() []byte { return append([]byte(nil), k.key[:]...) }

// Format prints a placeholder, so that no log holds the key.
func (k *EpochKey) Format(to fmt.State, _ rune) { fmt.Fprint(to, "(an epoch key)") }

// Salt returns the salt of unit i of a record. The argument record is SHA-256(value).
func (k *EpochKey) Salt(sequence int64, record [sha256.Size]byte, i int) Hash {
	var m mac
	return k.salt(&m, sequence, &record, i)
}

// salt depends on the whole record. So two records with one sequence, of a log that was copied or rolled back, share no salt.
func (k *EpochKey) salt(m *mac, sequence int64, record *[sha256.Size]byte, i int) Hash {
	m.begin(&k.key)
	m.buf = append(binary.BigEndian.AppendUint64(m.buf, uint64(sequence)), record[:]...)
	m.buf = binary.BigEndian.AppendUint32(m.buf, uint32(i))
	return m.end()
}

// hashing returns the key of the hashed values of a record. Its message is longer than that of a salt, so no salt is
// equal to it.
func (k *EpochKey) hashing(m *mac, sequence int64, record *[sha256.Size]byte) Hash {
	m.begin(&k.key)
	m.buf = binary.BigEndian.AppendUint64(append(m.buf, "hashed"...), uint64(sequence))
	m.buf = append(m.buf, record[:]...)
	return m.end()
}
