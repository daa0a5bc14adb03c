package input

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The log stores fingerprints. Two requests with the same idempotency key or reference_id are the same request if
// their fingerprints are equal. Bodies that differ only in members that are null have the same fingerprint, except
// where null means something else than an absent member.
//
// Earlier builds did distinguish such bodies, and the log has their fingerprints: see FingerprintAsSent.

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
	return fingerprint(route, forms, (*Form).Canonical)
}

// FingerprintAsSent returns the fingerprint that earlier builds computed. It differs from Fingerprint if a body has
// members that are null.
func FingerprintAsSent(route []byte, forms ...*Form) string {
	return fingerprint(route, forms, (*Form).asSent)
}

func fingerprint(route []byte, forms []*Form, content func(*Form) []byte) string {
	whole := slices.Clone(route)
	for _, f := range forms {
		whole = AppendPart(whole, content(f))
	}
	for _, f := range forms {
		switch {
		case f.mac != nil:
			sum := f.mac(whole)
			return hex.EncodeToString(sum[:min(16, len(sum))])
		case f.normal != nil:
			return FingerprintOf(f.normal)
		}
	}
	return FingerprintText(whole)
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

// WithoutNulls returns raw without the members that are null, in objects at any depth. It keeps the top-level members
// in kept. It returns raw if there are none or raw is not JSON.
func WithoutNulls(raw []byte, kept ...string) []byte {
	if !bytes.Contains(raw, []byte("null")) {
		return raw
	}
	out, err := withoutNulls(raw, kept)
	if err != nil {
		return raw
	}
	return out
}

// withoutNulls is WithoutNulls of one value.
func withoutNulls(raw jsontext.Value, kept []string) (jsontext.Value, error) {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(raw)), jsontext.NewEncoder(&out)
	for {
		kind := dec.PeekKind()
		if level, n := dec.StackIndex(dec.StackDepth()); level == '{' && n%2 == 0 && kind == '"' {
			if err := copyMember(dec, enc, kept); err != nil {
				return nil, err
			}
			continue
		}
		token, err := dec.ReadToken()
		if err == nil {
			err = enc.WriteToken(token)
		}
		if err != nil {
			return nil, err
		}
		if dec.StackDepth() == 0 {
			return bytes.TrimSpace(out.Bytes()), nil
		}
	}
}

// copyMember copies the name of the next member, or skips the member if it is null and not kept.
func copyMember(dec *jsontext.Decoder, enc *jsontext.Encoder, kept []string) error {
	name, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if text := name.String(); dec.PeekKind() != 'n' || dec.StackDepth() == 1 && slices.Contains(kept, text) {
		return enc.WriteToken(jsontext.String(text))
	}
	return dec.SkipValue()
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
