package upload

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// These are the fields of an upload and their limits.
const (
	fieldFile        = "file"
	fieldCategory    = "category"
	fieldOrientation = "orientation"
	fieldValidUntil  = "valid_until"

	maxField = 1 << 10 // maximum size in bytes of a field that is not a file
	maxParts = 100
)

// form is the state of an upload as its parts arrive.
type form struct {
	receiver *Receiver
	ctx      context.Context
	body     *body
	of       owner.Ref
	id       scalar.ID
	keyed    bool

	upload  Upload
	file    *content // nil until it has arrived
	seen    []string // names of the parts so far
	faults  []web.Fault
	problem *web.Problem // the error that ended the reading
}

// read reads all parts.
func (f *form) read(boundary string) {
	in := f.receiver.buffers.take(f.body)
	defer f.receiver.buffers.give(in)
	parts := multipart.NewReader(in, boundary)
	for range maxParts {
		p, err := parts.NextRawPart()
		switch {
		case err == io.EOF: //nolint:errorlint // bare, behind the last part; wrapped, the body ends amid them
			return
		case err != nil:
			f.problem = f.broken(err)
			return
		}
		if err := f.part(p); err != nil {
			f.problem = f.broken(err)
			return
		}
	}
	f.problem = malformed(fmt.Sprintf("it has more than %d parts", maxParts))
}

// broken returns the problem for an error that ended the reading.
func (f *form) broken(err error) *web.Problem {
	var problem *web.Problem
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(f.body.failed, errOverhead):
		return web.NewProblem(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", "There is too much in the body beside the file.")
	case f.body.failed != nil && f.ctx.Err() == nil:
		return web.NewProblem(http.StatusBadRequest, "BODY_INCOMPLETE", "The body could not be read to its end.").Because(f.body.failed)
	case f.body.failed != nil:
		return web.ProblemOf(f.ctx.Err())
	}
	return malformed("it does not end where its parts do, or a part has a bad head")
}

// part reads one part.
func (f *form) part(p *multipart.Part) error {
	disposition, params, err := mime.ParseMediaType(p.Header.Get(echo.HeaderContentDisposition))
	if err != nil || disposition != "form-data" || params["name"] == "" {
		return malformed("a part does not say which field it is")
	}
	name := params["name"]
	filename, named := params["filename"]
	if slices.Contains(f.seen, name) {
		f.fault(name, "value_error", "Value error, the field is given more than once", nil)
		return f.skip(p)
	}
	f.seen = append(f.seen, name)
	if e := p.Header.Get("Content-Transfer-Encoding"); e != "" && !slices.Contains([]string{"7bit", "8bit", "binary"}, strings.ToLower(e)) {
		f.fault(name, "value_error", "Value error, the field must be sent as it is, without a transfer encoding", nil)
		return f.skip(p)
	}
	switch name {
	case fieldFile:
		if !named && isText(p) {
			return f.refuseText(p)
		}
		return f.readFile(p, filename)
	case fieldCategory, fieldOrientation, fieldValidUntil:
		return f.readText(p, name)
	}
	f.fault(shown(name), "extra_forbidden", "Extra inputs are not permitted", nil)
	return f.skip(p)
}

func (f *form) fault(name, kind, message string, input any) {
	f.faults = append(f.faults, web.FormFault(name, kind, message, input))
}

// skip discards a part, which counts as overhead of the file.
func (f *form) skip(p *multipart.Part) error {
	_, err := io.Copy(io.Discard, p)
	return err
}

// readText reads a field that is not a file.
func (f *form) readText(p *multipart.Part, name string) error {
	raw, err := io.ReadAll(io.LimitReader(p, maxField+1))
	if err != nil {
		return err
	}
	text := string(raw)
	f.upload.parts.add(name, "", sha256.Sum256(raw))
	switch {
	case len(raw) > maxField:
		f.fault(name, "string_too_long", "String should have at most "+strconv.Itoa(maxField)+" bytes", nil)
		return f.skip(p)
	case !utf8.Valid(raw):
		f.fault(name, "string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string", nil)
	case strings.ContainsFunc(text, unicode.IsControl):
		f.fault(name, "value_error", "Value error, the text must not hold control characters", text)
	default:
		f.take(name, text)
	}
	return nil
}

// take parses and stores a field.
func (f *form) take(name, text string) {
	var known bool
	switch name {
	case fieldCategory:
		if f.upload.Category, known = document.ParseCategory(text); !known {
			f.fault(name, "enum", "Input should be "+either(document.Categories()), text)
		}
	case fieldOrientation:
		if f.upload.Orientation, known = document.ParseOrientation(text); !known {
			f.fault(name, "enum", "Input should be "+either(document.Orientations()), text)
		}
	case fieldValidUntil:
		if text == "" {
			return
		}
		t, code, message := web.ParseTime(text)
		if code != "" {
			f.fault(name, "value_error", "Value error, "+message, text)
		}
		f.upload.ValidUntil = t
	}
}

// either lists the allowed values in the style of this interface's errors.
func either[T ~string](all []T) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = "'" + string(s) + "'"
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// shown returns a client's field name, shortened and valid, for use in an error.
func shown(name string) string {
	if len(name) > 128 {
		name = name[:128] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// isText reports whether a part has the type of a text field, which is also the default without a Content-Type (RFC
// 7578, section 4.4).
func isText(p *multipart.Part) bool {
	media, _, err := mime.ParseMediaType(p.Header.Get(echo.HeaderContentType))
	return err != nil || media == echo.MIMETextPlain
}

// refuseText reads a text field that was sent instead of the file, and reports it as invalid. It applies the limit of
// a file, so that a large file without a filename gets the same error. The error does not repeat the text, which may
// be a document.
func (f *form) refuseText(p *multipart.Part) error {
	f.fault(fieldFile, "value_error", "Value error, the field must be a file, and this part is text: it has neither a filename nor the type of a file", nil)
	buffer := make([]byte, 4<<10)
	for size := 0; ; {
		n, err := p.Read(buffer)
		f.body.grant(n)
		if size += n; size > onboarding.MaxFile {
			return tooLarge()
		}
		if err == io.EOF { //nolint:errorlint // bare at the end of the part; wrapped, the body ends amid it
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readFile reads the file.
func (f *form) readFile(p *multipart.Part, filename string) error {
	if !utf8.ValidString(filename) || strings.ContainsFunc(filename, unicode.IsControl) {
		f.fault(fieldFile, "value_error", "Value error, the name of the file must be text without control characters", nil)
	}
	f.upload.Name = document.Name(filename)
	tables := !slices.Contains(f.seen, fieldCategory) || f.upload.Category.TakesTables()
	f.file = newContent(f, p)
	if err := f.file.read(tables); err != nil {
		return err
	}
	f.upload.parts.add(fieldFile, filename, f.file.sum())
	return nil
}

// decide returns the upload if it is accepted, else the error. others are errors of other parts of the request.
func (f *form) decide(others []error) (*Upload, error) {
	if f.problem != nil && f.problem.Code != malformedCode {
		return nil, f.problem
	}
	u := &f.upload
	if u.Category == "" {
		u.Category = document.Undetermined
	}
	if u.Orientation == "" {
		u.Orientation = document.Undetermined
	}
	if f.file != nil && errors.Is(f.file.unkept, seal.ErrDestroyed) {
		return nil, f.file.unkept
	}
	if f.file != nil && f.problem == nil {
		if why := f.file.refused(u.Category); why != nil {
			return nil, why
		}
	}
	if err := f.invalid(others); err != nil {
		return nil, err
	}
	if err := f.file.scanned(); err != nil {
		return nil, err
	}
	kept, err := f.file.draft.Keep()
	if err != nil {
		return nil, notKept(err)
	}
	u.File, u.Format, u.draft = kept, f.file.format, f.file.draft
	return u, nil
}

// malformedCode is the code of problems that list validation errors.
var malformedCode = web.Invalid().Code

// invalid returns all validation errors of the request, or nil.
func (f *form) invalid(others []error) error {
	var all []web.Fault
	for _, err := range others {
		if err == nil {
			continue
		}
		p := web.ProblemOf(err)
		if p.Code != malformedCode {
			return p
		}
		all = append(all, p.Errors...)
	}
	switch {
	case f.problem != nil: // the parts are unknown
		all = append(all, f.problem.Errors...)
	case f.file == nil && !slices.Contains(f.seen, fieldFile):
		all = append(all, web.FormFault(fieldFile, "missing", "Field required", nil))
	}
	if f.problem == nil {
		all = append(all, f.faults...)
	}
	if len(all) > 0 {
		return web.Invalid(all...)
	}
	return f.file.unkept
}

// discard removes the stored part of the file. It may be called after the file was kept.
func (f *form) discard() {
	if f.file != nil {
		f.file.drop()
	}
}

// said is a list of the contents of a request's parts.
type said []string

// add adds a part: its name, its file name and a hash of the content.
func (s *said) add(name, filename string, sum [sha256.Size]byte) {
	*s = append(*s, fmt.Sprintf("%d:%s%d:%s%x", len(name), name, len(filename), filename, sum))
}

func (s said) text() []byte {
	slices.Sort(s)
	return []byte(strings.Join(s, ","))
}
