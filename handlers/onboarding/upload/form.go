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
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/document"
	forms "github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
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
	errs    validation.Errors
	problem *problem.Problem // the error that ended the reading
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
func (f *form) broken(err error) *problem.Problem {
	var known *problem.Problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(f.body.failed, errOverhead):
		return problem.New(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", "There is too much in the body beside the file.")
	case f.body.failed != nil && f.ctx.Err() == nil:
		return problem.New(http.StatusBadRequest, "BODY_INCOMPLETE", "The body could not be read to its end.").Because(f.body.failed)
	case f.body.failed != nil:
		return problem.Of(f.ctx.Err())
	}
	return malformed("it does not end where its parts do, or a part has a bad head")
}

// part reads one part.
func (f *form) part(p *multipart.Part) error {
	disposition, params, err := parseDisposition(p.Header.Get(echo.HeaderContentDisposition))
	if err != nil || disposition != "form-data" || params["name"] == "" {
		return malformed("a part does not say which field it is")
	}
	name := params["name"]
	filename, named := params["filename"]
	if slices.Contains(f.seen, name) {
		f.invalid(name, "the field is given more than once", nil)
		return f.skip(p)
	}
	f.seen = append(f.seen, name)
	if e := p.Header.Get("Content-Transfer-Encoding"); e != "" && !slices.Contains([]string{"7bit", "8bit", "binary"}, strings.ToLower(e)) {
		f.invalid(name, "the field must be sent as it is, without a transfer encoding", nil)
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
	f.errs.AddKind(validation.ExtraForbidden, "", shown(name))
	return f.skip(p)
}

// parseDisposition parses the Content-Disposition of a part. Some clients escape a quote in a filename with a backslash.
// Browsers encode the quote as %22 and do not escape a backslash (WHATWG HTML, multipart/form-data). A filename that ends
// in a backslash is then invalid in the first syntax, and parseDisposition reads the header in the second.
func parseDisposition(header string) (disposition string, params map[string]string, err error) {
	if disposition, params, err = mime.ParseMediaType(header); err != nil {
		return mime.ParseMediaType(strings.ReplaceAll(header, `\`, `\\`))
	}
	return disposition, params, nil
}

// invalid adds an error of a field, worded by message. The response repeats the input.
func (f *form) invalid(name, message string, input any) {
	f.errs.Add(validation.FieldError{Path: validation.At(name), Kind: validation.ValueError, Message: message, Input: input})
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
		f.errs.Add(validation.FieldError{Path: validation.At(name), Kind: validation.StringTooLong, Args: []any{maxField, "bytes"}})
		return f.skip(p)
	case !utf8.Valid(raw):
		f.errs.AddKind(validation.StringUnicode, "", name)
	case strings.ContainsFunc(text, unicode.IsControl):
		f.invalid(name, "the text must not hold control characters", text)
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
			f.errs.Add(oneOf(name, document.Categories(), text))
		}
	case fieldOrientation:
		if f.upload.Orientation, known = document.ParseOrientation(text); !known {
			f.errs.Add(oneOf(name, document.Orientations(), text))
		}
	case fieldValidUntil:
		if text == "" {
			return
		}
		t, e := forms.ParseTime(text)
		if e != nil {
			f.invalid(name, e.Message, text)
		}
		f.upload.ValidUntil = t
	}
}

// oneOf returns the error of a field that is none of the allowed values.
func oneOf[T ~string](name string, allowed []T, input string) validation.FieldError {
	words := make([]string, len(allowed))
	for i, s := range allowed {
		words[i] = string(s)
	}
	return validation.FieldError{Path: validation.At(name), Kind: validation.Enum, Args: []any{words}, Input: input}
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
	f.invalid(fieldFile, "the field must be a file, and this part is text: it has neither a filename nor the type of a file", nil)
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
		f.invalid(fieldFile, "the name of the file must be text without control characters", nil)
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
	if err := f.rejection(others); err != nil {
		return nil, err
	}
	if err := f.file.scanned(); err != nil {
		return nil, err
	}
	stored, err := f.file.draft.Keep()
	if err != nil {
		return nil, notKept(err)
	}
	u.File, u.Format, u.draft = stored, f.file.format, f.file.draft
	return u, nil
}

// malformedCode is the code of problems that list validation errors.
var malformedCode = problem.Invalid().Code

// rejection returns a problem with all validation errors of the request, or nil.
func (f *form) rejection(others []error) error {
	var all []validation.FieldError
	for _, err := range others {
		if err == nil {
			continue
		}
		p := problem.Of(err)
		if p.Code != malformedCode {
			return p
		}
		all = append(all, p.Errors...)
	}
	switch {
	case f.problem != nil: // the parts are unknown
		all = append(all, f.problem.Errors...)
	case f.file == nil && !slices.Contains(f.seen, fieldFile):
		all = append(all, validation.FieldError{Path: validation.At(fieldFile), Kind: validation.Missing})
	}
	if f.problem == nil {
		all = append(all, f.errs.List...)
	}
	if len(all) > 0 {
		return problem.Invalid(all...)
	}
	return f.file.unkept
}

// discard removes the stored part of the file. It may be called after the file was kept.
func (f *form) discard() {
	if f.file != nil {
		f.file.drop()
	}
}

// partDigests describes the contents of a request's parts.
type partDigests []string

// add adds a part: its name, its file name and a hash of the content.
func (s *partDigests) add(name, filename string, sum [sha256.Size]byte) {
	*s = append(*s, fmt.Sprintf("%d:%s%d:%s%x", len(name), name, len(filename), filename, sum))
}

func (s partDigests) text() []byte {
	slices.Sort(s)
	return []byte(strings.Join(s, ","))
}
