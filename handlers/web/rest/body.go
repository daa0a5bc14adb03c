package rest

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

const jsonType = "application/json"

// Content implements operation.Transport.
func (r *request) Content() ([]byte, error) { return r.content(jsonType) }

// File reads a body of another media type than JSON, up to the same size. The handler MUST NOT keep the bytes.
func File(c echo.Context, mediaType string) ([]byte, error) {
	r, ok := c.(*request)
	if !ok {
		r = &request{echoContext: c}
	}
	return r.content(mediaType)
}

// content reads a body of a media type.
func (r *request) content(mediaType string) ([]byte, error) {
	in := r.Request()
	for _, name := range [...]string{echo.HeaderContentType, echo.HeaderContentEncoding} {
		if len(in.Header[name]) > 1 {
			return nil, problem.HeaderGivenTwice(name)
		}
	}
	if t := header(in, echo.HeaderContentType); t != mediaType {
		media, params, err := mime.ParseMediaType(t)
		charset := params["charset"]
		if err != nil || media != mediaType || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return nil, problem.New(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE",
				"The body must be sent as "+mediaType+".")
		}
	}
	if e := header(in, echo.HeaderContentEncoding); e != "" && !strings.EqualFold(e, "identity") {
		return nil, problem.New(http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_ENCODING", "The body must not be compressed.")
	}
	if in.ContentLength > input.MaxBody {
		return nil, problem.TooLarge()
	}
	raw, err := r.read()
	if err != nil {
		var limit *http.MaxBytesError
		if errors.As(err, &limit) {
			return nil, problem.TooLarge()
		}
		return nil, problem.New(http.StatusBadRequest, "BODY_INCOMPLETE", "The body could not be read to its end.").Because(err)
	}
	return raw, nil
}

// read reads the body. If the length is known and not unusually large, it reuses a buffer.
func (r *request) read() ([]byte, error) {
	in := r.Request()
	if in.ContentLength <= 0 || in.ContentLength > maxRoom {
		return io.ReadAll(http.MaxBytesReader(r.Response(), in.Body, input.MaxBody))
	}
	if int64(cap(r.room)) < in.ContentLength {
		r.room = make([]byte, max(in.ContentLength, 1024))
	}
	raw := r.room[:in.ContentLength] // valid until the handler returns; later requests reuse the buffer
	_, err := io.ReadFull(in.Body, raw)
	return raw, err
}

// Absent implements operation.Transport.
func (r *request) Absent() error {
	in := r.Request()
	raw, err := io.ReadAll(io.LimitReader(in.Body, input.MaxBody+1))
	if err == nil && len(raw) == 0 {
		return nil
	}
	in.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), in.Body))
	return input.Body(r.Content()).Done()
}
