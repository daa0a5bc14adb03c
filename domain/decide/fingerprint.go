package decide

import (
	"crypto/sha256"
	"encoding/hex"
)

// A fingerprint is 32 hex digits that tell what was asked for. Where several routes make a command's type, the type does not
// say on which of them the key was used, and the fingerprint begins with 8 digits more that do.
const (
	contentDigits = 32
	routeDigits   = 8
)

// OfRoute returns a fingerprint that tells the route as well: the first 4 bytes of SHA-256 of its name, before those of what
// was asked for.
func OfRoute(route, fingerprint string) string {
	sum := sha256.Sum256([]byte(route))
	return hex.EncodeToString(sum[:routeDigits/2]) + fingerprint
}

// splitFingerprint returns the part of a fingerprint that tells the route, empty where it tells none, and the rest.
func splitFingerprint(fingerprint string) (route, content string) {
	if len(fingerprint) != routeDigits+contentDigits {
		return "", fingerprint
	}
	return fingerprint[:routeDigits], fingerprint[routeDigits:]
}
