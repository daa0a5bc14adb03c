package form

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// AppendCanonical appends the canonical form of a request, which is equal for requests with the same meaning: defaults
// are explicit, and numbers have no trailing zeros. Fingerprints in the log are computed from these bytes, so the form
// of a request never changes. Every string of the value must be valid UTF-8.
func (o *Object[T]) AppendCanonical(b []byte, v *T) []byte {
	return o.append(b, v, func(p *Part[T]) bool { return !p.added || !p.zero(v) })
}

// AppendGiven is AppendCanonical without the members that are absent, null, or false.
func (o *Object[T]) AppendGiven(b []byte, v *T) []byte {
	return o.append(b, v, func(p *Part[T]) bool { return !p.zero(v) || p.byDefault != nil && p.byDefault(v) != "" })
}

// append appends the members that shown selects.
func (o *Object[T]) append(b []byte, v *T, shown func(*Part[T]) bool) []byte {
	w := fastjson.Writer{Bytes: append(b, '{')}
	comma := ""
	for _, p := range o.canonical {
		if !shown(p) {
			continue
		}
		w.Raw(comma)
		w.Raw(p.canonical)
		p.write(&w, v)
		comma = ","
	}
	w.Raw("}")
	if w.Err != nil {
		panic("form: " + o.name + " has no canonical form: " + w.Err.Error())
	}
	return w.Bytes
}

// Schema returns the JSON Schema of the object, without descriptions.
func (o *Object[T]) Schema() []byte {
	w := fastjson.Writer{}
	w.Raw(`{"type":"object","additionalProperties":false,"properties":{`)
	comma, required := "", []string(nil)
	for i := range o.parts {
		p := &o.parts[i]
		if p.check != nil || p.route {
			continue
		}
		w.Raw(comma)
		w.String(p.name)
		w.Raw(":" + p.schema())
		comma = ","
		if p.required {
			required = append(required, p.name)
		}
	}
	w.Raw(`},"required":[`)
	comma = ""
	for _, name := range required {
		w.Raw(comma)
		w.String(name)
		comma = ","
	}
	w.Raw(`]}`)
	return w.Bytes
}

// Hash returns a number that differs for another declaration: other members, types, bounds, words, or another order of
// them. It covers defaults as far as they follow from one word or boolean of the request. It does not cover what checks
// do.
func (o *Object[T]) Hash() uint64 {
	text := append([]byte(o.name), o.Schema()...)
	add := func(set func(*T)) {
		v := new(T)
		set(v)
		text = o.AppendCanonical(append(text, '\n'), v)
	}
	add(func(*T) {})
	for _, p := range o.canonical {
		for _, set := range p.samples {
			add(set)
		}
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}
