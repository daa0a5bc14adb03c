package marketdata

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/capacity"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections/marketdata"
)

const (
	mediaType = "application/vnd.apache.parquet"
	// pieceLimit is how long a client may take to read one piece of a file.
	pieceLimit = time.Minute
)

// send sends a file, or the range of it that the client asks for, or 304 if the client has it.
func (cfg *Config) send(c echo.Context, s *marketdata.Store, date string, f *marketdata.File) error {
	content := &section{ctx: c.Request().Context(), downloads: cfg.downloads, network: access.NetworkOf(rest.Address(c)).String(),
		store: s, date: date, file: f}
	defer content.Close()
	h := c.Response().Header()
	h.Set("ETag", `"`+f.SHA256.String()+`"`)
	rest.Public(h, cacheAge)
	h.Set(echo.HeaderContentType, mediaType)
	to := &pieces{Response: c.Response(), control: http.NewResponseController(c.Response()), content: content}
	http.ServeContent(to, oneRange(c.Request()), "", time.Time{}, content)
	return to.problem
}

// oneRange returns the request without a header Range that ServeContent must not see, so that the answer is the whole file: several
// ranges, because the bucket would be asked again for each, and a header has room for thousands of them; a unit other than bytes,
// which RFC 9110 says to ignore; and the last 0 bytes, which have no valid Content-Range.
func oneRange(r *http.Request) *http.Request {
	wanted := r.Header.Get("Range")
	if of, bytes := strings.CutPrefix(wanted, "bytes="); bytes && !strings.Contains(of, ",") && (!strings.HasPrefix(of, "-") || strings.Trim(of, "-0 \t") != "") {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Range")
	return r
}

// pieces is a response in pieces. The server's write deadline is for a complete response, but a file may be long.
type pieces struct {
	*echo.Response
	control *http.ResponseController
	content *section
	problem error // to be written instead
}

// WriteHeader implements http.ResponseWriter. It opens the file before it writes the header of a response with content, while the answer
// can still be a problem.
func (p *pieces) WriteHeader(status int) {
	h := p.Header()
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		p.problem = problem.New(status, "RANGE_NOT_SATISFIABLE", "The file does not have the bytes that the header Range asks for.")
	case http.StatusPreconditionFailed:
		p.problem = problem.New(status, "FILE_DIFFERS", "The file does not have the ETag that the header If-Match names.")
	case http.StatusOK, http.StatusPartialContent:
		if p.problem = p.content.open(); p.problem != nil {
			h.Del("Content-Range")
			h.Del("Accept-Ranges")
		}
	}
	if p.problem == nil {
		p.Response.WriteHeader(status)
		return
	}
	for _, name := range [...]string{echo.HeaderContentType, echo.HeaderContentLength, echo.HeaderXContentTypeOptions, "ETag"} {
		h.Del(name) // those of the file, or of the text that ServeContent would write
	}
}

// Write implements http.ResponseWriter.
func (p *pieces) Write(b []byte) (int, error) {
	if p.problem != nil {
		return 0, p.problem
	}
	if err := p.control.SetWriteDeadline(time.Now().Add(pieceLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.Response.Write(b)
}

// section reads a file of the bucket from any offset on. It implements io.ReadSeeker. The caller seeks, opens it, and then only reads.
type section struct {
	ctx       context.Context
	downloads *capacity.Limiter
	network   string // of the client
	store     *marketdata.Store
	date      string
	file      *marketdata.File

	offset int64
	leave  func()        // releases the capacity; nil if there is none
	from   io.ReadCloser // nil if it is not open
}

// open opens the file. Its error is a problem, unless the request has ended.
func (s *section) open() (err error) {
	if s.leave, err = s.downloads.Take(s.ctx, s.network); err != nil {
		return err
	}
	from, err := s.store.Open(s.ctx, s.date, s.file, s.offset)
	if err != nil {
		return unavailable(err)
	}
	s.from = from
	return nil
}

// Read implements io.Reader.
func (s *section) Read(b []byte) (int, error) {
	if s.from == nil {
		return 0, fs.ErrClosed
	}
	return s.from.Read(b)
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

// Close ends the reading. It releases the capacity even if the file is not open.
func (s *section) Close() {
	if s.leave != nil {
		defer s.leave()
		s.leave = nil
	}
	if s.from != nil {
		_ = s.from.Close()
		s.from = nil
	}
}
