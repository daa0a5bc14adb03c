package input

import (
	"github.com/perpetua-exchange/perpetua/domain/form"
)

// DecodeItem reads an item of a request into a zero value. Its error lists every error of the item.
func DecodeItem[T any](raw []byte, o *form.Object[T], to *T) error {
	if o.Decode(raw, to) {
		return nil
	}
	return Explain(Body(raw, nil), o, to)
}

// Explain reads an object that has errors or an unusual form.
func Explain[T any](f *Form, o *form.Object[T], to *T) error {
	*to = *new(T)
	o.Read(f, to)
	return f.Done()
}
