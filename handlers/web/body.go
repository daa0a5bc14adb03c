package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// MaxBody is the maximum size of a JSON body in bytes.
const MaxBody = 1 << 20

// maxDepth limits the nesting of a body. No valid request comes near it.
const maxDepth = 16

// node is a JSON value or the value of a query parameter.
type node struct {
	kind    jsontext.Kind // 'n', 't', 'f', '"', '0', '{', '['
	text    string        // a string, unescaped; a number, as sent
	broken  bool          // the string already has an error
	names   []string      // member names of an object, in order
	members map[string]*node
	items   []*node

	from, to int // byte range in the body
}

// Body parses the request's JSON object. Done reports its errors.
func Body(c echo.Context) *Form { return BodyForm(RequestOf(c).Content()) }

// BodyOnly is Body for a route without a query.
func BodyOnly(c echo.Context) *Form {
	a := RequestOf(c)
	raw, err := a.Content()
	return a.OnlyForm(raw, err)
}

// OnlyForm is BodyOnly after a call of Content. The form also reports errors of the query and of the Idempotency-Key.
func (a Request) OnlyForm(raw []byte, err error) *Form {
	f := bodyForm(raw, err, a.maxErrors())
	f.also(a.NoQuery())
	_, err = a.Key()
	f.also(err)
	return f
}

// BodyForm is Body after a call of Content.
func BodyForm(raw []byte, err error) *Form { return bodyForm(raw, err, validation.MaxErrors) }

func bodyForm(raw []byte, err error, limit int) *Form {
	f := &Form{where: inBody}
	if err != nil {
		f.problem = ProblemOf(err)
		f.root = &node{kind: '{'}
		f.errs = newErrors("")
		return f
	}
	f.root, f.errs = parse(raw, limit)
	f.raw = raw
	return f
}

const jsonType = "application/json"

// content implements transport.
func (r *request) content() ([]byte, error) {
	in := r.Request()
	for _, name := range [...]string{echo.HeaderContentType, echo.HeaderContentEncoding} {
		if len(in.Header[name]) > 1 {
			return nil, givenTwice(name)
		}
	}
	if t := header(in, echo.HeaderContentType); t != jsonType {
		media, params, err := mime.ParseMediaType(t)
		charset := params["charset"]
		if err != nil || media != jsonType || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return nil, NewProblem(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE",
				"The body must be sent as application/json.")
		}
	}
	if e := header(in, echo.HeaderContentEncoding); e != "" && !strings.EqualFold(e, "identity") {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_ENCODING", "The body must not be compressed.")
	}
	if in.ContentLength > MaxBody {
		return nil, tooLarge()
	}
	raw, err := r.read()
	if err != nil {
		var limit *http.MaxBytesError
		if errors.As(err, &limit) {
			return nil, tooLarge()
		}
		return nil, NewProblem(http.StatusBadRequest, "BODY_INCOMPLETE", "The body could not be read to its end.").Because(err)
	}
	return raw, nil
}

// read reads the body. If the length is known and not unusually large, it reuses a buffer.
func (r *request) read() ([]byte, error) {
	in := r.Request()
	if in.ContentLength <= 0 || in.ContentLength > maxRoom {
		return io.ReadAll(http.MaxBytesReader(r.Response(), in.Body, MaxBody))
	}
	if int64(cap(r.room)) < in.ContentLength {
		r.room = make([]byte, max(in.ContentLength, 1024))
	}
	raw := r.room[:in.ContentLength] // valid until the handler returns; later requests reuse the buffer
	_, err := io.ReadFull(in.Body, raw)
	return raw, err
}

func tooLarge() *Problem {
	return NewProblem(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", "The body is larger than 1 MiB.")
}

// parse parses one JSON object. After an error that leaves the structure readable it continues, so that all errors
// can be reported.
func parse(raw []byte, limit int) (*node, *partErrors) {
	p := &parser{errs: newErrors("")}
	p.errs.Limit = limit
	// Accept duplicate names and invalid UTF-8 here: they are reported as errors of their fields and do not end the
	// parsing.
	p.dec = jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	root, err := p.value(nil, 0)
	if err != nil {
		p.malformed(err)
		return &node{kind: '{'}, p.errs
	}
	if root.kind != '{' {
		p.errs.add(nil, notAnObject("the body must be a JSON object"))
		p.errs.fatal = true
		root = &node{kind: '{', from: root.from, to: root.to}
	}
	if at := p.dec.InputOffset(); p.more() {
		p.syntax(at, validation.TrailingData, "there is data after the JSON object")
	}
	return root, p.errs
}

type parser struct {
	dec  *jsontext.Decoder
	errs *partErrors
}

// more reports whether more tokens follow.
func (p *parser) more() bool {
	_, err := p.dec.ReadToken()
	return !errors.Is(err, io.EOF)
}

// syntax adds an error of the JSON syntax at a byte offset.
func (p *parser) syntax(offset int64, code, message string) {
	p.errs.add(nil, validation.FieldError{Code: code, Message: message, Args: []any{int(offset)}})
}

var errTooDeep = errors.New("nested too deeply")

// malformed records the error that ended the parsing. Nothing more can be said about the fields of a body that is not
// JSON.
func (p *parser) malformed(err error) {
	p.errs.fatal = true
	switch {
	case errors.Is(err, errTooDeep):
		p.syntax(p.dec.InputOffset(), validation.TooDeep, "the body nests deeper than "+strconv.Itoa(maxDepth)+" levels")
	case errors.Is(err, io.EOF):
		p.errs.add(nil, emptyBody)
	default:
		at := p.dec.InputOffset()
		var syntactic *jsontext.SyntacticError
		if errors.As(err, &syntactic) {
			at = syntactic.ByteOffset
		}
		p.syntax(at, validation.MalformedJSON, "the body is not valid JSON at byte "+strconv.FormatInt(at, 10))
	}
}

func (p *parser) value(path validation.Path, depth int) (*node, error) {
	switch kind := p.dec.PeekKind(); kind {
	case '{':
		if depth >= maxDepth {
			return nil, errTooDeep
		}
		return p.object(path, depth)
	case '[':
		if depth >= maxDepth {
			return nil, errTooDeep
		}
		return p.array(path, depth)
	default:
		raw, err := p.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		n := &node{kind: raw.Kind(), to: int(p.dec.InputOffset())}
		n.from = n.to - len(raw)
		switch n.kind {
		case '"':
			n.text, n.broken = p.text(raw, path)
		case '0':
			n.text = string(raw)
		}
		return n, nil
	}
}

func (p *parser) object(path validation.Path, depth int) (*node, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := &node{kind: '{', members: make(map[string]*node), from: int(p.dec.InputOffset()) - 1}
	for p.dec.PeekKind() != '}' {
		raw, err := p.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		name, _ := p.text(raw, path)
		at := path.Then(name)
		member, err := p.value(at, depth+1)
		if err != nil {
			return nil, err
		}
		if _, ok := n.members[name]; ok { // the value had to be read to continue after it
			p.errs.add(at, validation.FieldError{Code: validation.DuplicateField, Message: "the field is given more than once"})
			continue
		}
		n.members[name] = member
		n.names = append(n.names, name)
	}
	_, err := p.dec.ReadToken()
	n.to = int(p.dec.InputOffset())
	return n, err
}

func (p *parser) array(path validation.Path, depth int) (*node, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := &node{kind: '[', from: int(p.dec.InputOffset()) - 1}
	for p.dec.PeekKind() != ']' {
		item, err := p.value(path.Then(len(n.items)), depth+1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := p.dec.ReadToken()
	n.to = int(p.dec.InputOffset())
	return n, err
}

// text unescapes a JSON string. It reports invalid UTF-8 and lone surrogates, which the log never stores.
func (p *parser) text(raw jsontext.Value, path validation.Path) (s string, broken bool) {
	b, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case !utf8.Valid(raw):
		p.errs.add(path, validation.FieldError{Code: validation.InvalidUTF8, Message: "the string is not valid UTF-8"})
		return string(b), true
	case err != nil:
		p.errs.add(path, validation.FieldError{Code: validation.LoneSurrogate, Message: "the string holds half of a surrogate pair"})
		return string(b), true
	}
	return string(b), false
}
