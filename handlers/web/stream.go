package web

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// pieceLimit is how long a client may take to read a piece of an answer that comes in pieces: as long as the whole of
// another answer.
const pieceLimit = time.Minute

// Stream answers 200 with what write writes, piece by piece, compressed if the client asks for that: an answer of any
// length takes no more room than a piece. Each piece is sent when write calls next; what write has found wrong before
// anything was sent is answered as usual. After that the status is said, so a fault can only be shown by cutting the answer off.
func Stream(c echo.Context, contentType string, write func(w io.Writer, next func() error) error) error {
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	h.Set(echo.HeaderContentType, contentType)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	var out io.Writer = c.Response()
	flush, end := func() error { return nil }, func() error { return nil }
	if takesGzip(c.Request()) {
		h.Set(echo.HeaderContentEncoding, "gzip")
		z := gzip.NewWriter(out)
		out, flush, end = z, z.Flush, z.Close
	}
	control := http.NewResponseController(c.Response())
	err := write(out, func() error {
		// The server's limit is for a whole answer, and this one may take any number of pieces.
		if err := control.SetWriteDeadline(time.Now().Add(pieceLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if err := flush(); err != nil {
			return err
		}
		return control.Flush()
	})
	if err == nil {
		err = end()
	}
	switch {
	case err == nil:
		return nil
	case c.Response().Committed:
		panic(http.ErrAbortHandler)
	}
	h.Del(echo.HeaderContentEncoding) // the problem that is sent in its place is not compressed here
	return err
}

// Prefers reports whether a client would rather have a media type than the other: it names the first in Accept, with a
// quality above what it gives to the second by name.
func Prefers(c echo.Context, wanted, other string) bool {
	quality := accepted(c.Request(), wanted)
	return quality > 0 && quality > accepted(c.Request(), other)
}

// accepted returns the quality with which Accept names a media type, 0 where it does not.
func accepted(r *http.Request, wanted string) float64 {
	best := 0.0
	for _, line := range r.Header[echo.HeaderAccept] {
		for item := range strings.SplitSeq(line, ",") {
			media, parameters, err := mime.ParseMediaType(item)
			if err != nil || media != wanted {
				continue
			}
			q := 1.0
			if text, given := parameters["q"]; given {
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			best = max(best, min(q, 1))
		}
	}
	return best
}
