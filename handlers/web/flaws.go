package web

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// flaw is a validation error of a value. code and message are for the trading interface. kind and words are pydantic
// 2's type and message for the onboarding interface; without a kind, the error is a value_error with message.
type flaw struct{ code, message, kind, words string }

var (
	notAString   = flaw{WrongType, "the value must be a string", "string_type", "Input should be a valid string"}
	emptyString  = flaw{InvalidValue, "the value must not be empty", "string_too_short", "String should have at least 1 character"}
	notAnInteger = flaw{WrongType, "the value must be an integer", "int_type", "Input should be a valid integer"}
	emptyBody    = flaw{MalformedJSON, "the body is empty", "missing", "Field required"}
)

func notAnObject(message string) flaw {
	return flaw{WrongType, message, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}
}

func notAList(message string) flaw {
	return flaw{WrongType, message, "list_type", "Input should be a valid list"}
}

func notABool(where place) flaw {
	w := flaw{WrongType, "the value must be true or false", "bool_type", "Input should be a valid boolean"}
	if where != inBody {
		w.kind, w.words = "bool_parsing", "Input should be a valid boolean, unable to interpret input"
	}
	return w
}

func notPlainDigits(where place) flaw {
	w := flaw{InvalidValue, "the value must be an integer in plain digits", "int_from_float",
		"Input should be a valid integer, got a number with a fractional part"}
	if where != inBody {
		w.kind, w.words = "int_parsing", "Input should be a valid integer, unable to parse string as an integer"
	}
	return w
}

// outside returns the flaw of an integer outside least to most. sent is its text in the request.
func outside(least, most int64, sent string) flaw {
	from, to := strconv.FormatInt(least, 10), strconv.FormatInt(most, 10)
	w := flaw{OutOfRange, "the value must be between " + from + " and " + to, "less_than_equal", "Input should be less than or equal to " + to}
	if v, err := strconv.ParseInt(sent, 10, 64); err == nil && v < least || err != nil && strings.HasPrefix(sent, "-") {
		w.kind, w.words = "greater_than_equal", "Input should be greater than or equal to "+from
	}
	return w
}

// tooMany returns the flaw of an array with the wrong number of items.
func tooMany(least, most, items int) flaw {
	w := flaw{code: OutOfRange, message: fmt.Sprintf("the array must have %d to %d items", least, most)}
	if items < least {
		w.kind, w.words = "too_short", fmt.Sprintf("List should have at least %d %s after validation, not %d", least, plural(least, "item"), items)
	} else {
		w.kind, w.words = "too_long", fmt.Sprintf("List should have at most %d %s after validation, not %d", most, plural(most, "item"), items)
	}
	return w
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// noneOf returns the flaw of a string that is not in allowed.
func noneOf(allowed []string) flaw {
	code, message := OneOf(allowed...)("")
	return flaw{code, message, "enum", "Input should be " + listed(allowed)}
}

// listed joins names as pydantic does: 'a', 'b' or 'c'.
func listed(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString("'" + name + "'")
	}
	return b.String()
}

// notAUUID returns pydantic's type and message for a node that is not a UUID.
func notAUUID(n *node) (kind, words string) {
	if n.kind != '"' {
		return "uuid_type", "UUID input should be a string, bytes or UUID object"
	}
	const words36 = "Input should be a valid UUID, "
	for i, r := range n.text {
		if !strings.ContainsRune("0123456789abcdefABCDEF-", r) {
			return "uuid_parsing", words36 + fmt.Sprintf("invalid character: expected [0-9a-fA-F-], found `%s` at %d", shownRune(r), i+1)
		}
	}
	return "uuid_parsing", words36 + fmt.Sprintf("invalid length: expected 36 characters with four hyphens, found %d", utf8.RuneCountInString(n.text))
}

// shownRune returns a character in a form that is safe in a message.
func shownRune(r rune) string {
	if q := strconv.QuoteRuneToASCII(r); len(q) > 3 {
		return q[1 : len(q)-1]
	}
	return string(r)
}

func (f *Form) flaw(name string, w flaw) {
	path := f.path
	if name != "" {
		path = step(f.path, name)
	}
	f.faults.addFlaw(path, w)
}

// Flaw adds a validation error that only the handler can detect, in the form of the onboarding interface: with
// pydantic's type, such as missing or string_too_long, and a message. path leads to the member by names and array
// indexes. Flaw does nothing if the body could not be read.
func (f *Form) Flaw(kind, message string, path ...any) {
	if f.faults.fatal || f.problem != nil {
		return
	}
	w := flaw{code: InvalidValue, message: message, kind: kind, words: message}
	if kind == ValueError {
		w.words = valueError(message)
	}
	at := append(f.path[:len(f.path):len(f.path)], path...)
	f.faults.addFlaw(at, w)
}

// ValueError is pydantic's type for errors without a more specific type.
const ValueError = "value_error"

func valueError(message string) string { return "Value error, " + message }

// OptionalWhole reads an optional integer in any JSON notation, including 5.0 and 5e0.
func (f *Form) OptionalWhole(name string) Optional[int64] {
	n := f.member(name, false)
	if n != nil && n.kind == '0' && !isInteger(n.text) {
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
