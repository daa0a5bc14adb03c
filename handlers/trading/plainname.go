package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// readName reads the identification of an order from a batch item: either an order code or a reference_id.
func readName(raw []byte) (code scalar.ID, reference string, err error) {
	if code, reference, ok := plainName(raw); ok {
		return code, reference, nil
	}
	f := web.BodyForm(raw, nil)
	code, reference = nameIn(f)
	return code, reference, f.Done()
}

// nameIn reads the identification of an order from a batch item that may have other members.
func nameIn(f *web.Form) (code scalar.ID, reference string) {
	code = f.OptionalID("order_code").Value
	reference = f.OptionalString("reference_id", web.Reference).Value
	if f.Has("order_code") == f.Has("reference_id") {
		f.Fault("", validation.Required, "one of order_code and reference_id is required, and only one")
	}
	return code, reference
}

// plainName is a fast readName for the usual form of an item, like plainOrder for orders.
func plainName(raw []byte) (code scalar.ID, reference string, ok bool) {
	r := plainReader{rest: raw}
	r.take('{')
	name := string(r.quoted())
	r.take(':')
	text := string(r.quoted())
	r.take('}')
	r.space()
	if r.odd || len(r.rest) > 0 {
		return code, "", false
	}
	switch name {
	case "order_code":
		code, err := scalar.ParseID(text)
		return code, "", err == nil
	case "reference_id":
		wrong, _ := web.Reference(text)
		return code, text, wrong == ""
	}
	return code, "", false
}
