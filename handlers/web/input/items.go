package input

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Items reads a body that is an object with a single member, an array of 1 to most items. It returns the items as raw
// JSON, for handlers that answer each item separately. It returns an error for an invalid envelope and does not validate
// the items.
func Items(raw []byte, name string, most int) ([]jsontext.Value, error) {
	if items, ok := splitItems(raw, name); ok && len(items) > 0 && len(items) <= most {
		return items, nil
	}
	f := Body(raw, nil)
	f.array(name, true, 1, most)
	if err := f.Done(); err != nil {
		return nil, err
	}
	return nil, problem.Invalid(validation.FieldError{Path: validation.At(name), Code: validation.MalformedJSON, Message: "the array cannot be read"})
}

// splitItems returns the items of {name:[…]} and parses them only far enough to find their ends. It returns false for
// any other form.
func splitItems(raw []byte, name string) (items []jsontext.Value, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if open, err := dec.ReadToken(); err != nil || open.Kind() != '{' {
		return nil, false
	}
	if member, err := dec.ReadToken(); err != nil || member.Kind() != '"' || member.String() != name {
		return nil, false
	}
	if open, err := dec.ReadToken(); err != nil || open.Kind() != '[' {
		return nil, false
	}
	for dec.PeekKind() != ']' {
		from := dec.InputOffset()
		item, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		// The decoder's result is valid only until the next read. The same bytes in raw stay valid.
		to := dec.InputOffset()
		items = append(items, jsontext.Value(raw[to-int64(len(item)):to:to]))
		if to <= from {
			return nil, false
		}
	}
	for range 2 { // the end of the array and of the object
		if _, err := dec.ReadToken(); err != nil {
			return nil, false
		}
	}
	_, err := dec.ReadToken()
	return items, errors.Is(err, io.EOF) && dec.InputOffset() <= int64(len(raw))
}
