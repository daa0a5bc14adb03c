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
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// opened looks at the head of a request, and returns what stands between the parts of its body.
func opened(r *http.Request) (boundary string, err error) {
	media, params, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	switch {
	case len(r.Header[echo.HeaderContentType]) != 1 || err != nil || media != echo.MIMEMultipartForm:
		return "", web.NewProblem(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "The body must be sent as multipart/form-data.")
	case !identity(r.Header[echo.HeaderContentEncoding]):
		return "", web.NewProblem(http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_ENCODING", "The body must not be compressed.")
	case r.ContentLength > onboarding.MaxFile+maxOverhead:
		return "", tooLarge()
	case params["boundary"] == "" || len(params["boundary"]) > 70: // RFC 2046, 5.1.1
		return "", malformed("the boundary between its parts is missing or too long")
	}
	return params["boundary"], nil
}

func identity(encodings []string) bool {
	return len(encodings) == 0 || len(encodings) == 1 && strings.EqualFold(encodings[0], "identity")
}

// malformed is the fault of a body that can't be read as parts.
func malformed(why string) *web.Problem {
	return web.Invalid(web.FormFault("", "multipart_invalid", "Multipart decode error: "+why, nil))
}

var (
	errOverhead = errors.New("there is too much beside the file")
	errTimeout  = errors.New("the body took too long")
)

// body reads a request's body for as long as its client goes on sending.
type body struct {
	from    io.Reader
	control *http.ResponseController
	ctx     context.Context
	allowed int64     // that may still come beside what is granted
	set     time.Time // when the deadline was moved last
	failed  error     // why it could not be read on, but for its end
}

// pieceSize is how much of a body is read at a time.
const pieceSize = 64 << 10

func newBody(ctx context.Context, c echo.Context) *body {
	return &body{from: c.Request().Body, control: http.NewResponseController(c.Response()), ctx: ctx, allowed: maxOverhead + pieceSize}
}

// grant lets so much more come: it was of the file, which is counted by itself.
func (b *body) grant(n int) { b.allowed += int64(n) }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		b.failed = errTimeout
		return 0, b.failed
	}
	// The server's own limit is for the whole of a request, and a file takes longer on a slow line.
	if now := time.Now(); now.Sub(b.set) > time.Second {
		_ = b.control.SetReadDeadline(now.Add(pieceWithin))
		b.set = now
	}
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	if b.allowed -= int64(n); b.allowed < 0 {
		b.failed, err = errOverhead, errOverhead
	}
	return n, err
}

// end gives the answer its time, which counts from the request's beginning otherwise.
func (b *body) end() {
	_ = b.control.SetWriteDeadline(time.Now().Add(time.Minute))
}
