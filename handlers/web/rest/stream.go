package rest

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

// pieceLimit is how long a client may take to read one piece of a streamed response, which is as long as for any
// other complete response.
const pieceLimit = time.Minute

// Stream responds with 200 and the output of write in pieces, compressed if the client accepts gzip. The size of the
// response does not matter for memory, because write sends each piece by calling next. An error before the first
// piece is answered like any other. Later the status is already sent, so an error aborts the connection.
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
		// The server's write deadline is for a complete response, but this one may have any number of pieces.
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
	h.Del(echo.HeaderContentEncoding) // the problem that is sent instead is not compressed
	return err
}

// Prefers reports whether a client prefers the first media type to the second: Accept names it with a higher quality
// than it gives the second by name.
func Prefers(c echo.Context, wanted, other string) bool {
	quality := accepted(c.Request(), wanted)
	return quality > 0 && quality > accepted(c.Request(), other)
}

// accepted returns the quality of a media type in Accept, or 0 if it is not named.
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
