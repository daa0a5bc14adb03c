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
		if v, is := whole(n.text); is {
			return Optional[int64]{v, true}
		}
	}
	return f.integer(name, false, MinInteger, MaxInteger)
}

// whole returns the value of a JSON number that is a 64-bit integer. It is exact; float64 arithmetic would take
// 1e-400 for 0.
func whole(text string) (int64, bool) {
	sign, text := text[:len(text)-len(strings.TrimPrefix(text, "-"))], strings.TrimPrefix(text, "-")
	mantissa, power := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if power, err = strconv.Atoi(text[i+1:]); err != nil {
			return 0, false
		}
		mantissa = text[:i]
	}
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(before+after, "0")
	if strings.Trim(digits, "0") == "" {
		return 0, true
	}
	power += len(before) - len(digits) // exponent relative to the last nonzero digit
	if power < 0 || power > len("9223372036854775807") {
		return 0, false
	}
	v, err := strconv.ParseInt(sign+digits+strings.Repeat("0", power), 10, 64)
	return v, err == nil
}
