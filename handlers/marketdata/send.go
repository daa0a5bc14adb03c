package marketdata

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/projections/marketdata"
)

const (
	mediaType = "application/vnd.apache.parquet"
	immutable = "public, max-age=31536000, immutable"
	// pieceLimit is how long a client may take to read one piece of a file.
	pieceLimit = time.Minute
)

// send sends a file, or the range of it that the client asks for, or 304 if the client has it.
func send(c echo.Context, s *marketdata.Store, date string, f *marketdata.File) error {
	content := &section{ctx: c.Request().Context(), store: s, date: date, file: f}
	defer content.Close()
	if err := content.open(); err != nil { // while the answer can still be a problem
		return unavailable(err)
	}
	h := c.Response().Header()
	h.Set("ETag", `"`+f.SHA256.String()+`"`)
	h.Set(echo.HeaderCacheControl, immutable)
	h.Set(echo.HeaderContentType, mediaType)
	if !slices.Contains(h[echo.HeaderVary], echo.HeaderOrigin) { // a response without the header Origin has no CORS headers
		h.Add(echo.HeaderVary, echo.HeaderOrigin)
	}
	to := &pieces{Response: c.Response(), control: http.NewResponseController(c.Response())}
	http.ServeContent(to, c.Request(), "", time.Time{}, content)
	if to.unsatisfiable {
		h.Del(echo.HeaderContentType) // those of a text, which ServeContent has set
		h.Del(echo.HeaderXContentTypeOptions)
		return problem.New(http.StatusRequestedRangeNotSatisfiable, "RANGE_NOT_SATISFIABLE", "The file does not have the bytes that the header Range asks for.")
	}
	return nil
}

// pieces is a response in pieces. The server's write deadline is for a complete response, but a file may be long.
type pieces struct {
	*echo.Response
	control       *http.ResponseController
	unsatisfiable bool // the problem is written instead
}

// WriteHeader implements http.ResponseWriter.
func (p *pieces) WriteHeader(status int) {
	if status == http.StatusRequestedRangeNotSatisfiable {
		p.unsatisfiable = true
		return
	}
	p.Response.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (p *pieces) Write(b []byte) (int, error) {
	if p.unsatisfiable {
		return len(b), nil
	}
	if err := p.control.SetWriteDeadline(time.Now().Add(pieceLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.Response.Write(b)
}

// section reads a file of the bucket from any offset on. It implements io.ReadSeeker.
type section struct {
	ctx   context.Context
	store *marketdata.Store
	date  string
	file  *marketdata.File

	offset int64
	from   io.ReadCloser // reads from at on; nil if it is not open
	at     int64
}

func (s *section) open() (err error) {
	s.Close()
	s.from, err = s.store.Open(s.ctx, s.date, s.file, s.offset)
	if err != nil {
		s.from = nil
	}
	s.at = s.offset
	return err
}

// Read implements io.Reader.
func (s *section) Read(b []byte) (int, error) {
	if s.offset >= s.file.Bytes {
		return 0, io.EOF
	}
	if s.from == nil || s.at != s.offset {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	n, err := s.from.Read(b)
	s.offset, s.at = s.offset+int64(n), s.at+int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (s *section) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.offset
	case io.SeekEnd:
		offset += s.file.Bytes
	}
	if offset < 0 {
		return s.offset, errors.New("marketdata: a seek before the beginning of a file")
	}
	s.offset = offset
	return offset, nil
}

// Close ends the reading.
func (s *section) Close() {
	if s.from != nil {
		_ = s.from.Close()
		s.from = nil
	}
}
