package decide

import (
	"crypto/sha256"
	"encoding/hex"
)

// A fingerprint has 32 hex digits that identify the content of a request. If several routes produce the same command
// type, 8 more digits in front identify the route.
const (
	contentDigits = 32
	routeDigits   = 8
)

// OfRoute adds the route to a fingerprint: it prepends the first 4 bytes of the SHA-256 of the route's name, in hex.
func OfRoute(route, fingerprint string) string {
	sum := sha256.Sum256([]byte(route))
	return hex.EncodeToString(sum[:routeDigits/2]) + fingerprint
}

// splitFingerprint splits a fingerprint into the digits of the route, empty if it has none, and the digits of the
// content.
func splitFingerprint(fingerprint string) (route, content string) {
	if len(fingerprint) != routeDigits+contentDigits {
		return "", fingerprint
	}
	return fingerprint[:routeDigits], fingerprint[routeDigits:]
}
