package web

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

func (a Request) fingerprint(forms ...*Form) string {
	for _, f := range forms {
		switch {
		case f.mac != nil:
			sum := f.mac(a.said(canonical(forms)...))
			return hex.EncodeToString(sum[:min(16, len(sum))])
		case f.normal != nil:
			return FingerprintOf(f.normal)
		}
	}
	return FingerprintText(a.said(canonical(forms)...))
}

func canonical(forms []*Form) (parts [][]byte) {
	for _, f := range forms {
		parts = append(parts, f.Canonical())
	}
	return parts
}

// BodyFingerprint returns the fingerprint of a request with the body raw. A Form of that body gives the same one.
func (a Request) BodyFingerprint(raw []byte) string {
	return FingerprintText(a.said(CanonicalJSON(raw)))
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
		panic("web: a request has no JSON form: " + err.Error()) // values have plain fields only
	}
	return FingerprintText(text)
}

// FingerprintText returns the fingerprint of a text that contains the full meaning of a request.
func FingerprintText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// said returns an unambiguous text of the route, the parameters and the parts of a request.
func (a Request) said(parts ...[]byte) []byte {
	var b []byte
	part := func(s []byte) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(append(b, ':'), s...)
	}
	method, path, parameters := a.transport.route()
	part([]byte(method))
	part([]byte(path))
	for _, name := range parameters {
		part([]byte(a.Param(name)))
	}
	for _, p := range parts {
		part(p)
	}
	return b
}
