// Package checkpointkeytest makes verifier keys for tests.
package checkpointkeytest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Origin returns the origin of a log of a journal's only partition.
func Origin(name string, journal scalar.ID) string {
	return "venue.example/tlog/" + name + "/0/" + journal.String()
}

// Key returns the verifier key of a log. Each seed gives another key.
func Key(origin string, seed byte) string {
	public := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed)).Public().(ed25519.PublicKey)
	data := append([]byte{1}, public...)
	sum := sha256.Sum256(append([]byte(origin+"\n"), data...))
	return origin + "+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(data)
}
