package checkpointkey

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

const (
	// algEd25519 is the first byte of an Ed25519 public key in a verifier key.
	algEd25519 = 1
	hashSize   = 4
	// maxKey bounds a verifier key in bytes.
	maxKey = 512
)

// Check returns an error unless a text is a verifier key of an Ed25519 key.
func Check(key string) error {
	name, rest, _ := strings.Cut(key, "+")
	hash, public, _ := strings.Cut(rest, "+")
	data, err := base64.StdEncoding.Strict().DecodeString(public)
	if len(key) > maxKey || name == "" || err != nil || len(data) != 1+ed25519.PublicKeySize || data[0] != algEd25519 || strings.ContainsAny(key, " \t\r\n") {
		return errors.New("this is not the verifier key of an Ed25519 key")
	}
	if sum := sha256.Sum256(append([]byte(name+"\n"), data...)); hex.EncodeToString(sum[:hashSize]) != hash {
		return errors.New("the verifier key has another hash")
	}
	return nil
}

// Origin returns the origin of the log that a verifier key is of.
func Origin(key string) string {
	origin, _, _ := strings.Cut(key, "+")
	return origin
}
