package rest

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

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// noStore is the header value of all private responses, which share it.
var noStore = []string{"no-store"}

// private forbids every cache to store the response.
func private(c echo.Context) { c.Response().Header()[echo.HeaderCacheControl] = noStore }

// CachedJSON is Cached for the JSON form of a value.
func CachedJSON(c echo.Context, age time.Duration, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return Cached(c, age, echo.MIMEApplicationJSON, b)
}

// Cached responds with public content that caches may keep for age, or with 304 if the client has it.
func Cached(c echo.Context, age time.Duration, contentType string, b []byte) error {
	h := c.Response().Header()
	h.Add(echo.HeaderVary, operation.HeaderMinLogPosition) // a client that waits for its write must not get an older cached response
	Public(h, age)
	return Tagged(c, TagOf(b), contentType, b)
}

// Public sets the headers of public content that caches may keep for age, and must then revalidate.
func Public(h http.Header, age time.Duration) {
	h.Set(echo.HeaderCacheControl, "public, max-age="+strconv.Itoa(int(age.Seconds())))
	// Vary by Origin: without an Origin header the response has no CORS header, so a cache must not serve it to
	// pages.
	if !slices.Contains(h[echo.HeaderVary], echo.HeaderOrigin) {
		h.Add(echo.HeaderVary, echo.HeaderOrigin)
	}
}

// TagOf returns the ETag of content. It is weak because the content may also be sent compressed.
func TagOf(b []byte) string {
	sum := sha256.Sum256(b)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// Tagged responds with 200, or with 304 if the client has content with the tag.
func Tagged(c echo.Context, tag, contentType string, b []byte) error {
	if known(c, tag, len(b) > compressible) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, contentType, b)
}

// TaggedPacked is Tagged for content that is stored gzip-compressed. Clients that accept gzip get the stored bytes,
// others the unpacked ones.
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

// known sets the ETag and reports whether the client already has the content. varies means that the content is also
// sent compressed.
func known(c echo.Context, tag string, varies bool) bool {
	h := c.Response().Header()
	h.Set("ETag", tag)
	if !matches(c.Request().Header["If-None-Match"], tag) {
		return false
	}
	if varies { // a cache applies the headers of a 304, so they must equal those of the 200 (RFC 9110, section 15.4.5)
		h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	}
	return true
}

// matches reports whether one of the client's tags equals tag (RFC 9110, section 13.1.2).
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
