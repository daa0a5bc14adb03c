// Package seal encrypts the secrets in the log: password hashes, the private parts of signing keys, and personal data.
//
// There is one master key of 32 bytes, in a file or in the environment. A Box derives the keys in use from it. A ciphertext
// is bound to its owner, field and type, so it cannot be moved to another one. It begins with a version and the id of the
// master key, so that a wrong key is reported as a wrong key and not as damage.
//
// Owners seals the data of persons and corporates, with a key for each of them that can be destroyed. The key store holds
// these keys, sealed with the master key. The key store is a folder or a bucket without versions, separate from everything
// in backups. It MUST NOT be restored to an earlier state, which would bring destroyed keys back.
package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// KeySize is the size of the master key in bytes.
const KeySize = 32

const (
	version    = 1
	keyIDSize  = 4
	headerSize = 1 + keyIDSize
)

// AssociatedData identifies a ciphertext: its owner, its field, and the type of the object that has the field. It is
// authenticated but not stored.
type AssociatedData struct{ Owner, Field, Type string }

// ErrDamaged reports that a ciphertext was changed or has other associated data.
var ErrDamaged = errors.New("the sealed value is damaged or belongs elsewhere")

// WrongKeyError reports that a value was sealed with another master key.
type WrongKeyError struct {
	Have, Sealed string // key ids in hex
}

// Error names the ids of both keys.
func (e *WrongKeyError) Error() string {
	return fmt.Sprintf("the value was sealed with master key %s, and this is master key %s: restore the right key in the key store or in %s",
		e.Sealed, e.Have, Environment)
}

// Box seals and opens values with keys derived from the master key. It is safe for concurrent use.
type Box struct {
	master  []byte
	id      [keyIDSize]byte
	aead    tink.AEAD
	foreign bool // see Foreign
}

// Foreign returns a box with the same key for a process that reads the log of a venue without the venue's keys. It treats values
// that were sealed with another key as those of a destroyed one: Open returns ErrDestroyed instead of a *WrongKeyError.
func (b *Box) Foreign() *Box {
	f := *b
	f.foreign = true
	return &f
}

// IsForeign reports whether the box was made by Foreign.
func (b *Box) IsForeign() bool { return b.foreign }

// New returns a box with a master key of KeySize bytes.
func New(master []byte) (*Box, error) {
	if len(master) != KeySize {
		return nil, fmt.Errorf("the master key has %d bytes, not %d", len(master), KeySize)
	}
	b := &Box{master: append([]byte(nil), master...)}
	copy(b.id[:], b.Derive("key id"))
	aead, err := subtle.NewXChaCha20Poly1305(b.Derive("seal"))
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	b.aead = aead
	return b, nil
}

// Derive derives a key of 32 bytes for another purpose from the master key. Every node with the same master key derives
// the same key.
func (b *Box) Derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, b.master, nil, "perpetua "+purpose, KeySize)
	if err != nil { // only for impossible lengths
		panic(err)
	}
	return key
}

// KeyID returns an id of the master key that does not reveal the key.
func (b *Box) KeyID() string { return hex.EncodeToString(b.id[:]) }

// Seal encrypts a value and binds it to its associated data.
func (b *Box) Seal(plain []byte, at AssociatedData) ([]byte, error) {
	header := append([]byte{version}, b.id[:]...)
	c, err := b.aead.Encrypt(plain, associated(header, at))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append(header, c...), nil
}

// Open decrypts a value that was sealed with the same associated data. Its errors are ErrDamaged, *WrongKeyError, and for a foreign box ErrDestroyed.
func (b *Box) Open(sealed []byte, at AssociatedData) ([]byte, error) {
	if len(sealed) < headerSize || sealed[0] != version {
		return nil, ErrDamaged
	}
	header, c := sealed[:headerSize], sealed[headerSize:]
	if id := header[1:]; string(id) != string(b.id[:]) {
		if b.foreign {
			return nil, ErrDestroyed
		}
		return nil, &WrongKeyError{Have: b.KeyID(), Sealed: hex.EncodeToString(id)}
	}
	plain, err := b.aead.Decrypt(c, associated(header, at))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// MAC returns a keyed hash. It is equal for equal data, and reveals nothing to a reader without the key.
func (b *Box) MAC(data []byte) []byte { return MAC(b.Derive("mac"), data) }

// MAC returns the HMAC-SHA-256 of data, 32 bytes, with a key derived for the purpose. Compare two with hmac.Equal,
// which takes constant time.
func MAC(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}

// associated joins the header and the associated data. Each part is preceded by its length, so that different data never give
// the same bytes.
func associated(header []byte, at AssociatedData) []byte {
	out := append([]byte(nil), header...)
	for _, s := range []string{at.Owner, at.Field, at.Type} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	return out
}
