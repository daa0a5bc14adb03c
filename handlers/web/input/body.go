package input

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
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

// Body parses the body of a request, which is a JSON object. It takes the result of reading the body: err is the only
// error of the form if it is not nil.
func Body(raw []byte, err error) *Form { return BodyUpTo(raw, err, validation.MaxErrors) }

// BodyUpTo is Body with at most limit errors.
func BodyUpTo(raw []byte, err error, limit int) *Form {
	f := &Form{where: inBody}
	if err != nil {
		f.problem = problem.Of(err)
		f.root = &node{kind: '{'}
		f.errs = newErrors("")
		return f
	}
	f.root, f.errs = parse(raw, limit)
	f.raw = raw
	return f
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
