// Package upload receives files: one multipart/form-data body, read once as a stream, with its parts in any order.
//
// One pass over the file detects its type (domain/document/format), scans it, hashes it, and seals it into the bucket, with
// bounded memory and without clear text on a disk. The upload is accepted or refused after the last part, since the category,
// which limits the types, may come after the file. A refused or incomplete upload is discarded.
//
// The order of errors is: size and type (413, 415), then all invalid parts together (422), then the scanner's finding. If a
// scanner is configured and gives no verdict, the upload is refused (503).
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
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/places"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const (
	// maxOverhead is how much of a body may be something else than the file, in bytes: lines between parts, their heads,
	// and the other fields.
	maxOverhead = 64 << 10
	// receiveWithin is how long a body may take, and pieceWithin how long its client may send nothing.
	receiveWithin = 5 * time.Minute
	pieceWithin   = 30 * time.Second
	// placeWithin is how long an upload waits for others to end.
	placeWithin = 10 * time.Second
	// atOnce is how many a node receives at a time, and ofTenant how many of one tenant. Each takes about half a megabyte.
	atOnce   = 64
	ofTenant = atOnce / 2
)

// Receiver receives uploads. It is safe for concurrent use.
type Receiver struct {
	files   *files.Store
	scanner *clamd.Scanner // nil for none
	places  *places.Places
	buffers buffers
}

// New returns a receiver that keeps files in a store. Without a scanner nothing is scanned.
func New(store *files.Store, scanner *clamd.Scanner) *Receiver {
	return &Receiver{files: store, scanner: scanner, places: places.New(atOnce, ofTenant, placeWithin,
		places.Busy{Code: "UPLOADS_BUSY", Message: "Too many files are being uploaded."})}
}

// Upload is a file that was received, and what was said of it.
type Upload struct {
	Category    document.Category
	Orientation document.Orientation
	ValidUntil  scalar.Time // zero: for ever
	Name        string
	Format      format.Format
	File        files.File

	draft *files.Draft
	parts said
}

// Said is what the request says, as one text: the same for the same parts with the same bytes, in whatever order and with
// whatever between them. It is there if the request has an Idempotency-Key.
func (u *Upload) Said() []byte { return u.parts.text() }

// Discard removes the file. It is for who knows that no record names it, and that none will.
func (u *Upload) Discard(ctx context.Context) {
	// What can't be removed now is swept later.
	_ = u.draft.Discard(context.WithoutCancel(ctx))
}

// Receive receives the body of a request as a document of an owner. Its error is a *web.Problem or one of seal.Owners, and
// nothing is left in the bucket then. The faults of the rest of the request are told with those of the body.
func (r *Receiver) Receive(c echo.Context, of owner.Ref, id scalar.ID, others ...error) (*Upload, error) {
	boundary, err := opened(c.Request())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), receiveWithin)
	defer cancel()
	var tenant string
	if p := web.PrincipalOf(c); p != nil {
		tenant = p.Broker
	}
	leave, err := r.places.Take(ctx, tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	in := newBody(ctx, c)
	defer in.end()
	f := &form{receiver: r, ctx: ctx, body: in, of: of, id: id, keyed: web.AskOf(c).Keyed()}
	f.read(boundary)
	u, err := f.decide(others)
	if err != nil {
		f.discard()
		return nil, err
	}
	return u, nil
}

// Refuse answers a request that is refused, and then reads on for a while: a client that sends all of its body before it
// looks for the answer would find the connection broken instead. It returns the error, which is answered by then.
func Refuse(c echo.Context, err error) error {
	if err == nil || c.Request().Context().Err() != nil {
		return err
	}
	control := http.NewResponseController(c.Response())
	if control.EnableFullDuplex() != nil { // there is no connection to break
		return err
	}
	_ = control.SetWriteDeadline(time.Now().Add(pieceWithin))
	c.Error(err)
	if control.Flush() != nil || c.Request().Header.Get("Expect") != "" {
		return err // who asks before it sends has its answer
	}
	_ = control.SetReadDeadline(time.Now().Add(pieceWithin))
	_, _ = io.CopyN(io.Discard, c.Request().Body, onboarding.MaxFile+maxOverhead)
	return err
}

// The problems of files.
func tooLarge() *web.Problem {
	return web.NewProblem(http.StatusRequestEntityTooLarge, "DOCUMENT_TOO_LARGE", "The file is larger than 20 MiB.")
}

func notTaken(why string) *web.Problem {
	return web.NewProblem(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "The file is not taken: "+why+".")
}

func unscanned(err error) *web.Problem {
	return web.Unavailable("SCANNER_UNAVAILABLE", "The file could not be scanned.", 5*time.Second).Because(err)
}

// notKept is the error of a file that can't be kept. What is about the owner's key is for the caller to put into words.
func notKept(err error) error {
	for _, of := range []error{seal.ErrDestroyed, seal.ErrMissing, seal.ErrAway, context.Canceled} {
		if errors.Is(err, of) {
			return err
		}
	}
	return web.Unavailable("FILES_UNAVAILABLE", "Files can't be kept now.", time.Second).Because(err)
}
