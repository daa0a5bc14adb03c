package web

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// BodyItems reads a body that is an object with one member, an array of 1 to so many items, and returns the items as they
// were sent, for handlers that answer each of them by itself. What is wrong with the whole is the error; what is wrong
// with an item is not looked at. The route takes no query.
func (a Ask) BodyItems(name string, most int) ([]jsontext.Value, error) {
	raw, err := a.Content()
	if err == nil {
		err = a.NoQuery()
	}
	if err != nil {
		return nil, err
	}
	if items, ok := splitItems(raw, name); ok && len(items) > 0 && len(items) <= most {
		return items, nil
	}
	f := BodyForm(raw, nil)
	f.array(name, true, 1, most)
	if err := f.Done(); err != nil {
		return nil, err
	}
	return nil, Invalid(Fault{Field: name, Code: MalformedJSON, Message: "the array cannot be read"})
}

// splitItems cuts the items out of {name:[…]}, without reading them further than to their ends. It reports false for
// whatever is not of that form.
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
		// What the decoder returns is good until it goes on; the same bytes lie in the body, which stays.
		to := dec.InputOffset()
		items = append(items, jsontext.Value(raw[to-int64(len(item)):to:to]))
		if to <= from {
			return nil, false
		}
	}
	for range 2 { // the end of the array, and of the object
		if _, err := dec.ReadToken(); err != nil {
			return nil, false
		}
	}
	_, err := dec.ReadToken()
	return items, errors.Is(err, io.EOF) && dec.InputOffset() <= int64(len(raw))
}
