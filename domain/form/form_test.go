package form

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

type color string

type sample struct {
	Owner string
	Name  string
	Color color
	Price fixed.Decimal
	Cash  fixed.Money
	Until *scalar.Time
	Once  bool
	Note  string
}

func owner() Part[sample] { return Route("owner", func(s *sample) *string { return &s.Owner }) }
func name(limit int) Part[sample] {
	return Required("name", func(s *sample) *string { return &s.Name }, Text(Characters{limit, "-"}))
}
func hue(words ...color) Part[sample] {
	return Optional("color", func(s *sample) *color { return &s.Color }, Words(words...))
}
func once() Part[sample] { return Optional("once", func(s *sample) *bool { return &s.Once }, Bool()) }
func until() Part[sample] {
	return Pointer("until", func(s *sample) **scalar.Time { return &s.Until }, Time())
}
func price() Part[sample] {
	return Optional("price", func(s *sample) *fixed.Decimal { return &s.Price }, PositiveDecimal())
}
func cash() Part[sample] {
	return Optional("cash", func(s *sample) *fixed.Money { return &s.Cash }, Money())
}
func note() Part[sample] {
	return Optional("note", func(s *sample) *string { return &s.Note }, Text(Reference))
}

func samples() *Object[sample] {
	return New("sample", owner(), name(8), hue("red", "blue").Default(func(*sample) string { return "red" }), price(), once(), until(), note().Added(),
		cash().CanonicalAfter("name"), Check(func(s *sample, given Given, errs *validation.Errors) {
			if given.Has("cash") == given.Has("price") {
				errs.AddCode("", validation.Required, "one of cash and price is required")
			}
		}))
}

// object is a Source of values that a test sets.
type object struct {
	values map[string]Value
	errs   []string
}

func (o *object) Member(name string, required bool) (Value, bool) {
	v, ok := o.values[name]
	if !ok && required {
		o.Report(validation.FieldError{Path: validation.At(name), Code: validation.Required})
	}
	return v, ok
}

func (o *object) Has(name string) bool { _, ok := o.values[name]; return ok }

func (o *object) Report(e validation.FieldError) {
	o.errs = append(o.errs, e.Path.String()+" "+e.Code)
}

func text(s string) Value { return Value{Kind: '"', Text: []byte(s)} }

// TestDecode: a usual object is decoded, and every other one is left to Read.
func TestDecode(t *testing.T) {
	for body, want := range map[string]bool{
		`{"name":"n","price":"1.50"}`:                    true,
		" {\t\"price\" : \"1.50\" ,\n\"name\":\"n\"\r} ": true,
		`{"name":"n","price":"1.50","until":null}`:       true,
		`{"name":"n","price":"1.50"}x`:                   false,
		`{"name":"n","price":"1.50",}`:                   false,
		`{"name":"n" "price":"1.50"}`:                    false,
		`{"name":"n","price":"1.50"`:                     false,
		`{"name":"n","name":"n","price":"1.50"}`:         false,
		`{"name":"n","price":"1.50","owner":"o"}`:        false, // the route has it
		`{"name":"n","price":"1.50","x":1}`:              false,
		`{"n\u0061me":"n","price":"1.50"}`:               false,
		`{"name":"n","price":1.50}`:                      false,
		`{"name":"n","price":"0"}`:                       false,
		`{"name":"n","price":"1","cash":"1"}`:            false,
		`{"name":null,"price":"1"}`:                      false,
		`{"price":"1"}`:                                  false,
		`{}`:                                             false,
		`{"name":"n","price":"1","once":{}}`:             false,
		`[]`:                                             false,
		``:                                               false,
	} {
		var s sample
		if got := samples().Decode([]byte(body), &s); got != want || want && (s.Name != "n" || s.Price != fixed.Decimal{Coef: 150, Scale: 2}) {
			t.Errorf("%s: %v %+v", body, got, s)
		}
	}
}

// TestRead: every error is reported, members and checks in the order of their declaration.
func TestRead(t *testing.T) {
	o := object{values: map[string]Value{"cash": text("-1"), "price": text("x"), "color": text("green"), "note": {Kind: '"', Broken: true}}}
	samples().Read(&o, &sample{})
	want := []string{"name REQUIRED", "color INVALID_VALUE", "price INVALID_DECIMAL", "cash OUT_OF_RANGE", " REQUIRED"}
	if !slices.Equal(o.errs, want) {
		t.Errorf("%q, want %q", o.errs, want)
	}
	o = object{values: map[string]Value{"name": text("n"), "cash": text("1"), "until": {Kind: '0', Text: []byte("1893456000000")}}}
	var s sample
	if samples().Read(&o, &s); len(o.errs) > 0 || s.Cash != fixed.Unit || s.Until == nil || s.Until.String() != "2030-01-01T00:00:00.000000Z" {
		t.Errorf("%q %+v", o.errs, s)
	}
}

// TestCanonical: defaults are explicit, numbers are trimmed, and a member that was added later is left out if it is zero. What was given
// has no zeros, but its defaults.
func TestCanonical(t *testing.T) {
	at := scalar.Time(0)
	for _, tt := range []struct {
		value       sample
		want, given string
	}{
		{sample{Owner: "o", Name: "n", Price: fixed.Decimal{Coef: 150, Scale: 2}},
			`{"owner":"o","name":"n","cash":"0","color":"red","price":"1.5","once":false,"until":null}`,
			`{"owner":"o","name":"n","color":"red","price":"1.5"}`},
		{sample{Name: "n", Color: "blue", Cash: fixed.Unit, Once: true, Until: &at, Note: "x"},
			`{"owner":"","name":"n","cash":"1","color":"blue","price":"0","once":true,"until":"1970-01-01T00:00:00.000000Z","note":"x"}`,
			`{"name":"n","cash":"1","color":"blue","once":true,"until":"1970-01-01T00:00:00.000000Z","note":"x"}`},
	} {
		if got := string(samples().AppendCanonical([]byte("+"), &tt.value)); got != "+"+tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
		if got := string(samples().AppendGiven([]byte("+"), &tt.value)); got != "+"+tt.given {
			t.Errorf("%s\nwant %s", got, tt.given)
		}
	}
}

// TestHash: another declaration has another hash.
func TestHash(t *testing.T) {
	seen := map[uint64]string{}
	for what, o := range map[string]*Object[sample]{
		"as it is":          New("sample", owner(), name(8), hue("red", "blue"), once()),
		"name":              New("other", owner(), name(8), hue("red", "blue"), once()),
		"bound":             New("sample", owner(), name(9), hue("red", "blue"), once()),
		"words":             New("sample", owner(), name(8), hue("red", "blue", "green"), once()),
		"order of words":    New("sample", owner(), name(8), hue("blue", "red"), once()),
		"member":            New("sample", owner(), name(8), hue("red", "blue"), once(), note()),
		"added":             New("sample", owner(), name(8), hue("red", "blue"), once(), note().Added()),
		"route":             New("sample", name(8), hue("red", "blue"), once()),
		"order":             New("sample", owner(), name(8), once(), hue("red", "blue")),
		"default":           New("sample", owner(), name(8), hue("red", "blue").Default(func(*sample) string { return "blue" }), once()),
		"default of a word": New("sample", owner(), name(8), hue("red", "blue"), once(), note().Default(func(s *sample) string { return string(s.Color) })),
	} {
		if other := seen[o.Hash()]; other != "" {
			t.Errorf("%s and %s have the same hash", what, other)
		}
		seen[o.Hash()] = what
		if schema := jsontext.Value(o.Schema()); !schema.IsValid() {
			t.Errorf("%s: %s is not JSON", what, schema)
		}
	}
	if first, again := samples().Hash(), samples().Hash(); first != again {
		t.Error("a hash is not stable")
	}
}

// TestNames: no member is declared twice.
func TestNames(t *testing.T) {
	defer func() {
		if fmt.Sprint(recover()) == "<nil>" {
			t.Error("no panic")
		}
	}()
	New("sample", name(8), name(9))
}
