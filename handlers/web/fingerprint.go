package web

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

// Fingerprints are kept in the log: two requests with one key, or one reference_id, are the same request if they have
// the same fingerprint.

// Seal makes the fingerprint of a form that holds something secret or personal a keyed one, so that nobody who reads
// the log can try values until one matches. It returns the form.
func (f *Form) Seal(mac func([]byte) []byte) *Form {
	f.mac = mac
	return f
}

// Means makes the fingerprint that of a value's JSON form, for requests that mean the same and are written in more
// than one way. The log remembers these, so the value's members never change. It returns the form.
func (f *Form) Means(normal any) *Form {
	f.normal = normal
	return f
}

// Fingerprint tells requests apart: by method, route, route parameters and content. The query is part of the content
// where the handler read it.
func Fingerprint(c echo.Context, forms ...*Form) string { return AskOf(c).fingerprint(forms...) }

func (a Ask) fingerprint(forms ...*Form) string {
	for _, f := range forms {
		switch {
		case f.mac != nil:
			sum := f.mac(a.said(forms))
			return hex.EncodeToString(sum[:min(16, len(sum))])
		case f.normal != nil:
			return FingerprintOf(f.normal)
		}
	}
	return FingerprintText(a.said(forms))
}

// FingerprintOf is the fingerprint of the JSON form of a value that says all that a request does.
func FingerprintOf(normal any) string {
	text, err := json.Marshal(normal)
	if err != nil {
		panic("web: a request has no JSON form: " + err.Error()) // plain fields only
	}
	return FingerprintText(text)
}

// FingerprintText is the fingerprint of a text that says all that a request does.
func FingerprintText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// said is what a request says, as one text.
func (a Ask) said(forms []*Form) []byte {
	var b []byte
	part := func(s []byte) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(append(b, ':'), s...)
	}
	method, path, parameters := a.way.route()
	part([]byte(method))
	part([]byte(path))
	for _, name := range parameters {
		part([]byte(a.Param(name)))
	}
	for _, f := range forms {
		part(f.Canonical())
	}
	return b
}
