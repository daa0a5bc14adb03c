// Package upload receives files. It reads one multipart/form-data body once, as a stream, with its parts in any
// order.
//
// One pass over the file detects its type (domain/document/format), scans it, hashes it, and encrypts it into the
// bucket, with bounded memory and without plain text on disk. The upload is accepted or refused after the last part,
// because the category, which limits the types, may come after the file. A refused or incomplete upload is discarded.
//
// The order of errors is: size and type (413, 415), then all invalid parts together (422), then the scanner's
// finding. If a scanner is configured and gives no verdict, the upload is refused (503).
package upload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/capacity"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const (
	// maxOverhead limits the rest of the body besides the file, in bytes: boundaries, part headers and the other
	// fields.
	maxOverhead = 64 << 10
	// receiveWithin limits the total time for a body, and pieceWithin the time in which a client sends nothing.
	receiveWithin = 5 * time.Minute
	pieceWithin   = 30 * time.Second
	// capacityWithin is how long an upload waits for capacity.
	capacityWithin = 10 * time.Second
	// atOnce limits concurrent uploads of a node, and ofTenant those of one tenant. Each takes about half a megabyte.
	atOnce   = 64
	ofTenant = atOnce / 2
)

// Receiver receives uploads. It is safe for concurrent use.
type Receiver struct {
	files    *files.Store
	scanner  *clamd.Scanner // nil: no scanner
	capacity *capacity.Limiter
	buffers  buffers
}

// New returns a receiver that stores files. If scanner is nil, files are not scanned.
func New(store *files.Store, scanner *clamd.Scanner) *Receiver {
	return &Receiver{files: store, scanner: scanner, capacity: capacity.New(atOnce, ofTenant, capacityWithin,
		capacity.Busy{Code: "UPLOADS_BUSY", Message: "Too many files are being uploaded."})}
}

// Upload is a received file with its description.
type Upload struct {
	Category    document.Category
	Orientation document.Orientation
	ValidUntil  scalar.Time // zero: no expiry
	Name        string
	Format      format.Format
	File        files.File

	draft *files.Draft
	parts partDigests
}

// Content returns the content of the request as one text. It does not depend on the order of the parts or on the bytes
// between them. It is available if the request has an Idempotency-Key.
func (u *Upload) Content() []byte { return u.parts.text() }

// Discard removes the file. Call it only if no record references the file and none ever will.
func (u *Upload) Discard(ctx context.Context) {
	// If this fails, the sweeper removes the file later.
	_ = u.draft.Discard(context.WithoutCancel(ctx))
}

// Receive receives the body of a request as a document of an owner. It returns a *problem.Problem or an error of
// seal.Owners; in either case, nothing remains in the bucket. others are errors of other parts of the request, which
// are reported together with those of the body.
func (r *Receiver) Receive(c echo.Context, of owner.Ref, id scalar.ID, others ...error) (*Upload, error) {
	boundary, err := opened(c.Request())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), receiveWithin)
	defer cancel()
	var tenant string
	if p := rest.PrincipalOf(c); p != nil {
		tenant = p.Broker
	}
	leave, err := r.capacity.Take(ctx, tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	in := newBody(ctx, c)
	defer in.end(c.Request())
	f := &form{receiver: r, ctx: ctx, body: in, of: of, id: id, keyed: rest.RequestOf(c).Keyed()}
	f.read(boundary)
	u, err := f.decide(others)
	if err != nil {
		f.discard()
		return nil, err
	}
	return u, nil
}

// maxRest is the number of bytes that Refuse reads after the response.
const maxRest = onboarding.MaxFile + maxOverhead

// Refuse responds with an error and then reads the rest of the body for a while. A client that reads the response
// only after sending its complete body would otherwise find the connection broken. If the body may be longer than
// maxRest, the response announces that the connection will be closed. Refuse returns the error, which has been written.
func Refuse(c echo.Context, err error) error {
	if err == nil || c.Request().Context().Err() != nil {
		return err
	}
	control := http.NewResponseController(c.Response())
	if control.EnableFullDuplex() != nil { // the transport has no connection that could break
		return err
	}
	_ = control.SetWriteDeadline(time.Now().Add(pieceWithin))
	if r := c.Request(); r.ProtoMajor == 1 && r.Body != http.NoBody && (r.ContentLength < 0 || r.ContentLength > maxRest) {
		c.Response().Header().Set(echo.HeaderConnection, "close")
	}
	c.Error(err)
	if control.Flush() != nil || c.Request().Header.Get("Expect") != "" {
		return err // a client that sent Expect reads the response before the body
	}
	_ = control.SetReadDeadline(time.Now().Add(pieceWithin))
	_, _ = io.CopyN(io.Discard, c.Request().Body, maxRest)
	return err
}

// These functions return the problems of files.
func tooLarge() *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "DOCUMENT_TOO_LARGE", "The file is larger than 20 MiB.")
}

func notTaken(why string) *problem.Problem {
	return problem.New(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "The file is not taken: "+why+".")
}

func unscanned(err error) *problem.Problem {
	return problem.Unavailable("SCANNER_UNAVAILABLE", "The file could not be scanned.", 5*time.Second).Because(err)
}

// notKept converts the error of a file that cannot be stored. The caller converts errors about the owner's key.
func notKept(err error) error {
	for _, of := range []error{seal.ErrDestroyed, seal.ErrMissing, seal.ErrAway, context.Canceled} {
		if errors.Is(err, of) {
			return err
		}
	}
	return problem.Unavailable("FILES_UNAVAILABLE", "Files can't be kept now.", time.Second).Because(err)
}
