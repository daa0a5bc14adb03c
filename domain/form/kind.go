package form

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Value is a value in a request that is not null.
type Value struct {
	Kind   jsontext.Kind // '"', '0', 't', 'f', '{', or '['
	Text   []byte        // a string, unescaped; a number, as sent. It MUST NOT be changed or kept.
	Broken bool          // the string is not valid Unicode, which the parser has reported
	// Parameter says that the value is a parameter of a query or a path, which are all strings.
	Parameter bool
}

// Kind is a type of values in requests.
type Kind[V comparable] struct {
	schema  func() string // returns JSON
	samples []V           // all values but zero, if they are few
	read    func(in Value) (V, *validation.FieldError)
	write   func(w *fastjson.Writer, v V)
}

// Read reads a value. The error has no path. There is none for a broken string, which has been reported.
func (k Kind[V]) Read(in Value) (V, *validation.FieldError) { return k.read(in) }

// Words is a string that must be one of words.
func Words[E ~string](words ...E) Kind[E] {
	allowed := make([]string, len(words))
	for i, w := range words {
		allowed[i] = string(w)
	}
	return Kind[E]{
		schema: func() string { return `{"type":"string","enum":` + quoted(allowed) + `}` }, samples: words,
		read: func(in Value) (E, *validation.FieldError) {
			for _, w := range words {
				if in.Kind == '"' && string(in.Text) == string(w) && !in.Broken {
					return w, nil
				}
			}
			_, e := ReadText(in)
			if e == nil && !in.Broken {
				e = NoneOf(allowed)
			}
			return "", e
		},
		write: func(w *fastjson.Writer, v E) { w.String(string(v)) },
	}
}

// quoted returns the JSON array of strings.
func quoted(all []string) string {
	w := fastjson.Writer{}
	w.Raw("[")
	for i, s := range all {
		if i > 0 {
			w.Raw(",")
		}
		w.String(s)
	}
	w.Raw("]")
	return string(w.Bytes)
}

// constant returns a function that returns s.
func constant(s string) func() string { return func() string { return s } }

// Text is a string of characters.
func Text(allowed Characters) Kind[string] {
	return Kind[string]{
		schema: allowed.schema,
		read: func(in Value) (string, *validation.FieldError) {
			if in.Kind == '"' && !in.Broken && allowed.allow(in.Text) {
				return string(in.Text), nil
			}
			return ReadText(in, allowed.Rule)
		},
		write: (*fastjson.Writer).String,
	}
}

// ReadText reads a string that is not empty, has no control characters, and satisfies the rules.
func ReadText(in Value, rules ...Rule) (string, *validation.FieldError) {
	text := string(in.Text)
	switch {
	case in.Kind != '"':
		return "", NotAString()
	case in.Broken:
		return "", nil
	case text == "":
		return "", fail(validation.InvalidValue, "the value must not be empty", validation.StringTooShort, 1, "character")
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", fail(validation.ControlCharacter, "the text holds a control character", "")
	}
	for _, rule := range rules {
		if code, message := rule(text); code != "" {
			return "", fail(code, message, "")
		}
	}
	return text, nil
}

// Bool is a boolean.
func Bool() Kind[bool] {
	return Kind[bool]{
		schema: constant(`{"type":"boolean","default":false}`), samples: []bool{true},
		read: func(in Value) (bool, *validation.FieldError) {
			switch {
			case in.Kind == 't', in.Parameter && string(in.Text) == "true":
				return true, nil
			case in.Kind == 'f', in.Parameter && string(in.Text) == "false":
				return false, nil
			case in.Parameter:
				return false, fail(validation.WrongType, "the value must be true or false", validation.BoolParsing)
			}
			return false, fail(validation.WrongType, "the value must be true or false", validation.BoolType)
		},
		write: (*fastjson.Writer).Bool,
	}
}

// Integer is an integer from least to most: a JSON number without point or exponent.
func Integer(least, most int64) Kind[int64] {
	return Kind[int64]{
		schema: func() string { return fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, least, most) },
		read: func(in Value) (int64, *validation.FieldError) {
			switch {
			case in.Broken:
				return 0, nil
			case in.Kind != '0' && !in.Parameter:
				return 0, fail(validation.WrongType, "the value must be an integer", validation.IntType)
			case !IsInteger(string(in.Text)) && in.Parameter:
				return 0, fail(validation.InvalidValue, "the value must be an integer in plain digits", validation.IntParsing)
			case !IsInteger(string(in.Text)):
				return 0, fail(validation.InvalidValue, "the value must be an integer in plain digits", validation.IntFractional)
			}
			v, err := strconv.ParseInt(string(in.Text), 10, 64)
			if err == nil && v >= least && v <= most {
				return v, nil
			}
			message := fmt.Sprintf("the value must be between %d and %d", least, most)
			if err == nil && v < least || err != nil && in.Text[0] == '-' {
				return 0, fail(validation.OutOfRange, message, validation.GreaterThanEqual, least)
			}
			return 0, fail(validation.OutOfRange, message, validation.LessThanEqual, most)
		},
		write: func(w *fastjson.Writer, v int64) { w.Bytes = strconv.AppendInt(w.Bytes, v, 10) },
	}
}

// IsInteger reports whether s matches -?(0|[1-9][0-9]*) and is not -0.
func IsInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "0" {
		return s == "0"
	}
	if digits == "" || digits[0] == '0' {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// Leverage is an integer from 1 to most: a JSON number, or a string of digits without sign or leading zero.
func Leverage(most int) Kind[int] {
	return Kind[int]{
		schema: func() string {
			pattern := "^[1-9][0-9]*$"
			if most >= 10 && most < 20 {
				pattern = fmt.Sprintf("^([1-9]|1[0-%d])$", most-10)
			}
			return fmt.Sprintf(`{"anyOf":[{"type":"integer","minimum":1,"maximum":%d},{"type":"string","pattern":"%s"}]}`, most, pattern)
		},
		read: func(in Value) (int, *validation.FieldError) {
			switch text := string(in.Text); {
			case in.Broken:
				return 0, nil
			case in.Kind != '0' && in.Kind != '"':
				return 0, fail(validation.WrongType, "the leverage must be an integer or a string of digits", "")
			case !IsInteger(text) || text[0] == '-' || text == "0":
				return 0, fail(validation.InvalidValue, "the leverage must match ^[1-9][0-9]*$", "")
			}
			v, err := strconv.Atoi(string(in.Text))
			if err != nil || v > most {
				return 0, fail(validation.OutOfRange, "the leverage must be between 1 and "+strconv.Itoa(most), "")
			}
			return v, nil
		},
		write: func(w *fastjson.Writer, v int) { w.Bytes = strconv.AppendInt(w.Bytes, int64(v), 10) },
	}
}

// ID is a UUID.
func ID() Kind[scalar.ID] {
	return Kind[scalar.ID]{
		schema: constant(`{"type":"string","pattern":"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}`),
		read: func(in Value) (id scalar.ID, e *validation.FieldError) {
			if in.Kind == '"' && !in.Broken && id.UnmarshalText(in.Text) == nil {
				return id, nil
			}
			if _, e = ReadText(in); e == nil && in.Broken {
				return scalar.ID{}, nil
			}
			if e == nil {
				e = fail(validation.InvalidValue, "the value must be a UUID", "")
			}
			return scalar.ID{}, notAUUID(in, e)
		},
		write: func(w *fastjson.Writer, v scalar.ID) { fastjson.Text(w, v) },
	}
}

// Decimal is a decimal of plain digits without exponent, plus sign or superfluous leading zeros. It is a string: a JSON
// number is an error.
func Decimal(rules ...DecimalRule) Kind[fixed.Decimal] {
	return Kind[fixed.Decimal]{
		schema: constant(`{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$"}`),
		read: func(in Value) (fixed.Decimal, *validation.FieldError) {
			d, e := readDecimal(in)
			if e == nil && !in.Broken {
				for _, rule := range rules {
					if code, message := rule(d); code != "" {
						return fixed.Decimal{}, fail(code, message, "")
					}
				}
			}
			return d, e
		},
		write: writeTrimmed,
	}
}

// PositiveDecimal is a Decimal greater than zero.
func PositiveDecimal() Kind[fixed.Decimal] {
	k := Decimal(Positive)
	k.schema = constant(`{"type":"string","pattern":"^(0|[1-9][0-9]*)(\\.[0-9]+)?$","not":{"pattern":"^0(\\.0*)?$"}}`)
	return k
}

func writeTrimmed(w *fastjson.Writer, d fixed.Decimal) { fastjson.Text(w, d.Trim()) }

func readDecimal(in Value) (d fixed.Decimal, e *validation.FieldError) {
	switch {
	case in.Broken:
	case in.Kind != '"':
		e = fail(validation.WrongType, "the value must be a string that holds a decimal", "")
	default:
		var err error
		if d, err = fixed.ParseDecimal(in.Text); err == nil {
			return d, nil
		}
		text := string(in.Text)
		switch negative := strings.HasPrefix(text, "-"); {
		case !isDecimal(strings.TrimPrefix(text, "-")):
			e = fail(validation.InvalidDecimal, "the value must be a decimal in plain digits, like 0.5 or 1200", "")
		case negative && strings.Trim(text, "-0.") == "":
			e = fail(validation.InvalidDecimal, "zero has no sign", "")
		default:
			e = fail(validation.TooManyDigits, "the value has too many digits", "")
		}
	}
	return fixed.Decimal{}, e
}

// isDecimal reports whether s matches (0|[1-9][0-9]*)(\.[0-9]+)?.
func isDecimal(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > 1 && whole[0] == '0' || point && fraction == "" {
		return false
	}
	return strings.Trim(whole, "0123456789") == "" && strings.Trim(fraction, "0123456789") == ""
}

// MoneyDecimals is the maximum number of decimals of an amount of money.
const MoneyDecimals = 8

// Money is a positive amount of money with at most 8 decimals.
func Money() Kind[fixed.Money] {
	k := money(Positive)
	k.schema = constant(`{"type":"string","pattern":"^(0|[1-9][0-9]*)(\\.[0-9]{1,8})?$","not":{"pattern":"^0(\\.0*)?$"}}`)
	return k
}

// Notional is Money that may be zero.
func Notional() Kind[fixed.Money] {
	k := money(NotNegative)
	k.schema = constant(`{"type":"string","pattern":"^(0|[1-9][0-9]*)(\\.[0-9]{1,8})?$"}`)
	return k
}

func money(rule DecimalRule) Kind[fixed.Money] {
	decimal := Decimal(rule, MaxDecimals(MoneyDecimals))
	return Kind[fixed.Money]{
		read: func(in Value) (fixed.Money, *validation.FieldError) {
			d, e := decimal.read(in)
			m, fits := fixed.MoneyOf(d)
			if e == nil && !fits {
				return 0, fail(validation.TooManyDigits, "the value has too many digits", "")
			}
			return m, e
		},
		write: func(w *fastjson.Writer, v fixed.Money) { fastjson.Text(w, v) },
	}
}

// fail returns an error of a value.
func fail(code, message, kind string, args ...any) *validation.FieldError {
	return &validation.FieldError{Code: code, Message: message, Kind: kind, Args: slices.Clip(args)}
}
