package input

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// The errors of values. They have no path yet.
var (
	emptyBody = validation.FieldError{Code: validation.MalformedJSON, Message: "the body is empty", Kind: validation.Missing}
)

func notAnObject(message string) validation.FieldError {
	return validation.FieldError{Code: validation.WrongType, Message: message, Kind: validation.ModelType}
}

func notAList(message string) validation.FieldError {
	return validation.FieldError{Code: validation.WrongType, Message: message, Kind: validation.ListType}
}

// tooMany returns the error of an array with the wrong number of items.
func tooMany(least, most, items int) validation.FieldError {
	e := validation.FieldError{Code: validation.OutOfRange, Message: fmt.Sprintf("the array must have %d to %d items", least, most),
		Kind: validation.ListTooLong, Args: []any{most, items}}
	if items < least {
		e.Kind, e.Args = validation.ListTooShort, []any{least, items}
	}
	return e
}

// fail adds the error e to a member, or to the whole form if name is empty.
func (f *Form) fail(name string, e validation.FieldError) {
	e.Path = nil
	if name != "" {
		e.Path = validation.At(name)
	}
	f.errs.add(f.path, e)
}

// Add adds an error that only the handler can detect, with the path from this form. It does nothing if the body could
// not be read.
func (f *Form) Add(e validation.FieldError) {
	if !f.errs.fatal && f.problem == nil {
		f.errs.add(f.path, e)
	}
}

// AddOnce adds an error of a nested member that only the handler can detect, with the path from this form. It does
// nothing if the member or an enclosing one already has an error.
func (f *Form) AddOnce(e validation.FieldError) {
	for n := range e.Path {
		if f.Faulty(e.Path[:n+1]...) {
			return
		}
	}
	f.Add(e)
}

// OptionalWhole reads an optional integer in any JSON notation, including 5.0 and 5e0.
func (f *Form) OptionalWhole(name string) Optional[int64] {
	n := f.member(name, false)
	if n != nil && n.kind == '0' && !form.IsInteger(n.text) {
		if plain, is := whole(n.text); is {
			return f.plain(name, plain)
		}
	}
	return f.integer(name, false, MinInteger, MaxInteger)
}

// plain reads an integer without point or exponent, which stands for the member.
func (f *Form) plain(name, text string) Optional[int64] {
	v, failed := form.Integer(MinInteger, MaxInteger).Read(form.Value{Kind: '0', Text: []byte(text)})
	if failed != nil {
		f.fail(name, *failed)
	}
	return Optional[int64]{v, failed == nil}
}

// whole returns a JSON number that is an integer, without point and exponent. An integer that is too large for 64 bits
// has at least 20 digits. The result is exact; float64 arithmetic would take 1e-400 for 0.
func whole(text string) (plain string, is bool) {
	sign, text := text[:len(text)-len(strings.TrimPrefix(text, "-"))], strings.TrimPrefix(text, "-")
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(before+after, "0")
	if strings.Trim(digits, "0") == "" {
		return "0", true
	}
	power := len(before) - len(digits) // exponent relative to the last nonzero digit
	if exponent != "" {
		n, err := strconv.Atoi(exponent)
		if err != nil { // more digits than an int has
			n = maxPower
			if exponent[0] == '-' {
				n = -maxPower
			}
		}
		power += max(-maxPower, min(n, maxPower))
	}
	if power < 0 {
		return "", false
	}
	return sign + strings.TrimLeft(digits+strings.Repeat("0", min(power, len("9223372036854775807")+1)), "0"), true
}

// maxPower is greater than the length of any number in a body.
const maxPower = 1 << 30
