package upload

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// opened validates the header of a request and returns the boundary between the parts.
func opened(r *http.Request) (boundary string, err error) {
	media, params, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	switch {
	case len(r.Header[echo.HeaderContentType]) != 1 || err != nil || media != echo.MIMEMultipartForm:
		return "", problem.New(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "The body must be sent as multipart/form-data.")
	case !identity(r.Header[echo.HeaderContentEncoding]):
		return "", problem.New(http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_ENCODING", "The body must not be compressed.")
	case r.ContentLength > onboarding.MaxFile+maxOverhead:
		return "", tooLarge()
	case params["boundary"] == "" || len(params["boundary"]) > 70: // RFC 2046, section 5.1.1
		return "", malformed("the boundary between its parts is missing or too long")
	}
	return params["boundary"], nil
}

func identity(encodings []string) bool {
	return len(encodings) == 0 || len(encodings) == 1 && strings.EqualFold(encodings[0], "identity")
}

// malformed returns the error for a body that is not valid multipart.
func malformed(why string) *problem.Problem {
	return problem.Invalid(validation.FieldError{Kind: validation.MultipartInvalid, Args: []any{why}})
}

var (
	errOverhead = errors.New("there is too much beside the file")
	errTimeout  = errors.New("the body took too long")
)

// body reads a request's body with a deadline that is renewed while the client sends.
type body struct {
	from    io.Reader
	control *http.ResponseController
	ctx     context.Context
	allowed int64     // bytes that may still arrive, besides granted ones
	set     time.Time // time of the last renewal of the deadline
	failed  error     // the error, other than EOF, that ended the reading
	whole   bool      // the body was read to its end
}

// pieceSize is the size of one read.
const pieceSize = 64 << 10

func newBody(ctx context.Context, c echo.Context) *body {
	return &body{from: c.Request().Body, control: http.NewResponseController(c.Response()), ctx: ctx, allowed: maxOverhead + pieceSize}
}

// grant allows n more bytes. They belonged to the file, which has another limit.
func (b *body) grant(n int) { b.allowed += int64(n) }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		b.failed = errTimeout
		return 0, b.failed
	}
	// The server's read deadline is for the complete request, and a file may take longer on a slow line.
	if now := time.Now(); now.Sub(b.set) > time.Second {
		_ = b.control.SetReadDeadline(now.Add(pieceWithin))
		b.set = now
	}
	n, err := b.from.Read(p)
	if b.whole = errors.Is(err, io.EOF); err != nil && !b.whole {
		b.failed = err
	}
	if b.allowed -= int64(n); b.allowed < 0 {
		b.failed, err = errOverhead, errOverhead
	}
	return n, err
}

// end extends the deadline of the response, which otherwise counts from the beginning of the request. It takes a body that
// was read to its end from the request, so that Refuse does not close the connection because of it.
func (b *body) end(r *http.Request) {
	if b.whole {
		r.Body = http.NoBody
	}
	_ = b.control.SetWriteDeadline(time.Now().Add(time.Minute))
}
