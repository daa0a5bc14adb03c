package web

import (
	"github.com/perpetua-exchange/perpetua/domain/form"
)

// Decode reads the body of a request without a query into a zero value. It returns the body, for BodyFingerprint. Its
// error lists every error of the body, the query, and the Idempotency-Key.
func Decode[T any](a Request, o *form.Object[T], to *T) (raw []byte, _ error) {
	raw, err := a.Content()
	if _, badKey := a.Key(); err == nil && badKey == nil && a.transport.query() == "" && o.Decode(raw, to) {
		return raw, nil
	}
	return raw, explain(a.OnlyForm(raw, err), o, to)
}

// DecodeItem reads an item of a request into a zero value. Its error lists every error of the item.
func DecodeItem[T any](raw []byte, o *form.Object[T], to *T) error {
	if o.Decode(raw, to) {
		return nil
	}
	return explain(BodyForm(raw, nil), o, to)
}

// explain reads an object that has errors or an unusual form.
func explain[T any](f *Form, o *form.Object[T], to *T) error {
	*to = *new(T)
	o.Read(f, to)
	return f.Done()
}
