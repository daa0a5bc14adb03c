package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

// noStore is shared by all answers that hold it.
var noStore = []string{"no-store"}

// private keeps an answer out of every cache.
func private(c echo.Context) { c.Response().Header()[echo.HeaderCacheControl] = noStore }

// CachedJSON is Cached for a value.
func CachedJSON(c echo.Context, age time.Duration, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return Cached(c, age, echo.MIMEApplicationJSON, b)
}

// Cached answers 200 with what anybody may see and caches may keep for a while, or 304 to a client that has it already.
func Cached(c echo.Context, age time.Duration, contentType string, b []byte) error {
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "public, max-age="+strconv.Itoa(int(age.Seconds())))
	h.Add(echo.HeaderVary, HeaderMinLogPosition) // who waits for a write does not want an answer of before it
	// A cache must not give pages what a program got: without an origin the answer does not say that they may read it.
	if !slices.Contains(h[echo.HeaderVary], echo.HeaderOrigin) {
		h.Add(echo.HeaderVary, echo.HeaderOrigin)
	}
	return Tagged(c, TagOf(b), contentType, b)
}

// TagOf returns the tag of an answer. It is a weak one, since the same answer is also sent compressed.
func TagOf(b []byte) string {
	sum := sha256.Sum256(b)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// Tagged answers 200, or 304 to a client that has what the tag is of.
func Tagged(c echo.Context, tag, contentType string, b []byte) error {
	if known(c, tag, len(b) > compressible) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, contentType, b)
}

// TaggedPacked is Tagged for bytes that are kept compressed with gzip: who takes that gets them as they are, and for who does
// not they are unpacked.
func TaggedPacked(c echo.Context, tag, contentType string, unpacked func() ([]byte, error), packed []byte) error {
	if known(c, tag, true) {
		return c.NoContent(http.StatusNotModified)
	}
	if !takesGzip(c.Request()) {
		b, err := unpacked()
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, contentType, b)
	}
	w := c.Response()
	h := w.Header()
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	h.Set(echo.HeaderContentEncoding, "gzip")
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(packed)))
	h.Set(echo.HeaderContentType, contentType)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(packed)
	return err
}

// known tags an answer and reports whether the client has it. varies says that the answer is also sent compressed.
func known(c echo.Context, tag string, varies bool) bool {
	h := c.Response().Header()
	h.Set("ETag", tag)
	if !matches(c.Request().Header["If-None-Match"], tag) {
		return false
	}
	if varies { // a cache takes over what a 304 says, which so must say the same as the 200 (RFC 9110, section 15.4.5)
		h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	}
	return true
}

// matches reports whether one of the tags that a client has is the tag (RFC 9110, section 13.1.2).
func matches(given []string, tag string) bool {
	for _, line := range given {
		for has := range strings.SplitSeq(line, ",") {
			has = strings.TrimSpace(has)
			if has == "*" || strings.TrimPrefix(has, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
