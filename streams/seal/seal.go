// Package seal encrypts the secrets in the log: password hashes, the private parts of signing keys, and personal data.
//
// There is one master key of 32 bytes, in a file or in the environment. A Box derives the keys in use from it. A ciphertext
// is bound to its owner, field and type, so it cannot be moved to another place. It begins with a version and the id of the
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

// Place says what a ciphertext is: whose, which field, of which type of thing. It is authenticated, not stored.
type Place struct{ Owner, Field, Type string }

// ErrDamaged says that a ciphertext was changed, or is not of the place that it is said to be of.
var ErrDamaged = errors.New("the sealed value is damaged or belongs elsewhere")

// WrongKeyError says that a value was sealed with another master key than this one.
type WrongKeyError struct {
	Have, Sealed string // key ids in hex
}

// Error names both keys.
func (e *WrongKeyError) Error() string {
	return fmt.Sprintf("the value was sealed with master key %s, and this is master key %s: restore the right key in the key store or in %s",
		e.Sealed, e.Have, Environment)
}

// Box seals and opens. It is safe for concurrent use.
type Box struct {
	master []byte
	id     [keyIDSize]byte
	aead   tink.AEAD
}

// New makes a box out of a master key.
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

// Derive returns a key of 32 bytes for another purpose. Every node with the same master key derives the same.
func (b *Box) Derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, b.master, nil, "perpetua "+purpose, KeySize)
	if err != nil { // only for impossible lengths
		panic(err)
	}
	return key
}

// KeyID names the master key without giving it away.
func (b *Box) KeyID() string { return hex.EncodeToString(b.id[:]) }

// Seal encrypts a value for its place.
func (b *Box) Seal(plain []byte, at Place) ([]byte, error) {
	header := append([]byte{version}, b.id[:]...)
	c, err := b.aead.Encrypt(plain, associated(header, at))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append(header, c...), nil
}

// Open decrypts a value of the given place. Its errors are ErrDamaged and *WrongKeyError.
func (b *Box) Open(sealed []byte, at Place) ([]byte, error) {
	if len(sealed) < headerSize || sealed[0] != version {
		return nil, ErrDamaged
	}
	header, c := sealed[:headerSize], sealed[headerSize:]
	if id := header[1:]; string(id) != string(b.id[:]) {
		return nil, &WrongKeyError{Have: b.KeyID(), Sealed: hex.EncodeToString(id)}
	}
	plain, err := b.aead.Decrypt(c, associated(header, at))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// MAC returns a keyed hash: equal for equal data, and of no use to those without the key.
func (b *Box) MAC(data []byte) []byte { return MAC(b.Derive("mac"), data) }

// MAC returns the HMAC-SHA-256 of data, 32 bytes, under a key that was derived for the purpose. Compare two with hmac.Equal,
// which takes the same time wherever they differ.
func MAC(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}

// associated joins the header and the place, each part with its length, so that no two places give the same bytes.
func associated(header []byte, at Place) []byte {
	out := append([]byte(nil), header...)
	for _, s := range []string{at.Owner, at.Field, at.Type} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	return out
}
