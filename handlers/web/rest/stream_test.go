package rest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
)

// TestAStreamThatFails: before anything was sent the fault is answered like any other, and after that the answer is cut off,
// so that nobody takes a part for the whole.
func TestAStreamThatFails(t *testing.T) {
	fault := errors.New("a row that cannot be written")
	for _, coding := range []string{"", "gzip"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(echo.HeaderAcceptEncoding, coding)
		stream := func(write func(io.Writer, func() error) error) (h http.Header, err error, cut bool) {
			w := httptest.NewRecorder()
			defer func() { cut = recover() == http.ErrAbortHandler }()
			h = w.Header()
			err = Stream(echo.New().NewContext(r, w), "text/csv", write)
			return h, err, false
		}
		h, err, cut := stream(func(io.Writer, func() error) error { return fault })
		if !errors.Is(err, fault) || cut || h.Get(echo.HeaderContentEncoding) != "" {
			t.Errorf("%q: before anything was sent: %v, cut %v, %v", coding, err, cut, h)
		}
		_, err, cut = stream(func(w io.Writer, next func() error) error {
			if _, err := io.WriteString(w, "a,b\r\n"); err != nil {
				return err
			}
			return errors.Join(next(), fault)
		})
		if !cut {
			t.Errorf("%q: after a piece was sent: %v, and it is not cut off", coding, err)
		}
	}
}
