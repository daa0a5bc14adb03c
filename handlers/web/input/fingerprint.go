package input

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The log stores fingerprints. Two requests with the same idempotency key or reference_id are the same request if
// their fingerprints are equal.

// Seal makes the fingerprint a keyed hash, for a form with secret or personal data. A reader of the log then cannot
// test guesses against the fingerprint. It returns the form.
func (f *Form) Seal(mac func([]byte) []byte) *Form {
	f.mac = mac
	return f
}

// Means bases the fingerprint on the JSON form of normal, for requests with several equivalent spellings. The log
// stores these fingerprints, so the members of normal must never change. It returns the form.
func (f *Form) Means(normal any) *Form {
	f.normal = normal
	return f
}

// Fingerprint returns the fingerprint of a request with the given forms. route is the route as AppendPart encodes it.
func Fingerprint(route []byte, forms ...*Form) string {
	for _, f := range forms {
		switch {
		case f.mac != nil:
			sum := f.mac(withContent(route, forms))
			return hex.EncodeToString(sum[:min(16, len(sum))])
		case f.normal != nil:
			return FingerprintOf(f.normal)
		}
	}
	return FingerprintText(withContent(route, forms))
}

func withContent(route []byte, forms []*Form) []byte {
	for _, f := range forms {
		route = AppendPart(route, f.Canonical())
	}
	return route
}

// AppendPart appends the length and the text of a part of a request, so that parts cannot run into one another.
func AppendPart[S ~string | ~[]byte](b []byte, part S) []byte {
	b = strconv.AppendInt(b, int64(len(part)), 10)
	return append(append(b, ':'), part...)
}

// CanonicalJSON returns the canonical form of raw (RFC 8785), or raw if it has none.
func CanonicalJSON(raw []byte) []byte {
	v := jsontext.Value(slices.Clone(raw))
	if err := v.Canonicalize(); err != nil {
		return raw
	}
	return v
}

// FingerprintOf returns the fingerprint of a value's JSON form. The value must contain the full meaning of the
// request.
func FingerprintOf(normal any) string {
	text, err := json.Marshal(normal)
	if err != nil {
		panic("input: a request has no JSON form: " + err.Error()) // values have plain fields only
	}
	return FingerprintText(text)
}

// FingerprintText returns the fingerprint of a text that contains the full meaning of a request.
func FingerprintText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
