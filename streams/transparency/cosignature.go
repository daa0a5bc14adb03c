package transparency

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

const (
	// algCosignature is the type of the Ed25519 keys of witnesses (c2sp.org/tlog-cosignature).
	algCosignature = 4
	timestampSize  = 8
)

// WitnessKey is the public key of a witness. It verifies Ed25519 cosignatures of c2sp.org/tlog-cosignature. It implements
// note.Verifier.
type WitnessKey struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

// NewWitnessKey returns the key of a witness with a name.
func NewWitnessKey(name string, key ed25519.PublicKey) WitnessKey {
	sum := sha256.Sum256(append([]byte(name+"\n"), append([]byte{algCosignature}, key...)...))
	return WitnessKey{name, binary.BigEndian.Uint32(sum[:]), key}
}

// ParseWitnessKey reads a verifier key (c2sp.org/signed-note) of the type of cosignatures.
func ParseWitnessKey(text string) (WitnessKey, error) {
	name, rest, _ := strings.Cut(text, "+")
	hash, key, _ := strings.Cut(rest, "+")
	data, err := base64.StdEncoding.Strict().DecodeString(key)
	switch {
	case name == "" || err != nil || len(data) == 0:
		return WitnessKey{}, errors.New("this is not a verifier key")
	case data[0] != algCosignature || len(data) != 1+ed25519.PublicKeySize:
		return WitnessKey{}, fmt.Errorf("a key of type %d is not supported: a witness needs one of type %d (Ed25519 cosignatures)", data[0], algCosignature)
	}
	w := NewWitnessKey(name, data[1:])
	if want := fmt.Sprintf("%08x", w.hash); hash != want {
		return WitnessKey{}, fmt.Errorf("the hash of this key is %s, not %s", want, hash)
	}
	return w, nil
}

// String returns the key in the form that ParseWitnessKey reads.
func (w WitnessKey) String() string {
	return w.name + "+" + hex.EncodeToString(binary.BigEndian.AppendUint32(nil, w.hash)) + "+" +
		base64.StdEncoding.EncodeToString(append([]byte{algCosignature}, w.key...))
}

// Name implements note.Verifier.
func (w WitnessKey) Name() string { return w.name }

// KeyHash implements note.Verifier.
func (w WitnessKey) KeyHash() uint32 { return w.hash }

// Verify implements note.Verifier.
func (w WitnessKey) Verify(msg, sig []byte) bool {
	if len(sig) != timestampSize+ed25519.SignatureSize {
		return false
	}
	at := binary.BigEndian.Uint64(sig)
	return at <= math.MaxInt64 && ed25519.Verify(w.key, CosignedMessage(int64(at), msg), sig[timestampSize:])
}

// CosignedMessage returns the message that a witness signs for the text of a checkpoint. at is in Unix seconds.
func CosignedMessage(at int64, text []byte) []byte {
	return append([]byte("cosignature/v1\ntime "+strconv.FormatInt(at, 10)+"\n"), text...)
}

// cosignedAt returns the time of a cosignature that was verified.
func cosignedAt(s note.Signature) time.Time {
	const idSize = 4
	b, err := base64.StdEncoding.DecodeString(s.Base64)
	if err != nil || len(b) < idSize+timestampSize {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b[idSize:])), 0).UTC()
}
