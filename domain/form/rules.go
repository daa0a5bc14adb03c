package form

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// A Rule validates a text. It returns an empty code if the text is valid.
type Rule func(text string) (code, message string)

// A DecimalRule validates a decimal. It returns an empty code if the decimal is valid.
type DecimalRule func(d fixed.Decimal) (code, message string)

// Positive allows decimals greater than zero.
func Positive(d fixed.Decimal) (code, message string) {
	if d.Sign() <= 0 {
		return validation.OutOfRange, "the value must be greater than zero"
	}
	return "", ""
}

// NotNegative allows decimals of zero or more.
func NotNegative(d fixed.Decimal) (code, message string) {
	if d.Sign() < 0 {
		return validation.OutOfRange, "the value must not be negative"
	}
	return "", ""
}

// MaxDecimals allows at most n digits after the point, zeros included.
func MaxDecimals(n int) DecimalRule {
	return func(d fixed.Decimal) (string, string) {
		if int(d.Scale) > n {
			return validation.TooManyDigits, "the value must have at most " + strconv.Itoa(n) + " decimals"
		}
		return "", ""
	}
}

// Characters allows 1 to Limit characters: letters, digits, and those in Extra. Codes, reference IDs, and keys have this
// form.
type Characters struct {
	Limit int
	Extra string
}

// Reference is the form of reference IDs and idempotency keys: [A-Za-z0-9._:-]{1,64}.
var Reference = Characters{64, "._:-"}

// Allow reports whether the text is valid.
func (c Characters) Allow(text string) bool { return allow(c, text) }

func (c Characters) allow(text []byte) bool { return allow(c, text) }

func allow[T string | []byte](c Characters, text T) bool {
	if len(text) == 0 || len(text) > c.Limit {
		return false
	}
	for i := range len(text) {
		b := text[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !letter && (b < '0' || b > '9') && strings.IndexByte(c.Extra, b) < 0 {
			return false
		}
	}
	return true
}

// Rule checks a text as Allow does. Its message describes the form.
func (c Characters) Rule(text string) (code, message string) {
	if c.Allow(text) {
		return "", ""
	}
	return validation.InvalidValue, "the value must be 1 to " + strconv.Itoa(c.Limit) + " characters out of letters, digits and " + c.Extra
}

func (c Characters) schema() string {
	return fmt.Sprintf(`{"type":"string","pattern":"^[A-Za-z0-9%s]{1,%d}$"}`, c.Extra, c.Limit)
}

// NotAString returns the error of a value that should be a string.
func NotAString() *validation.FieldError {
	return fail(validation.WrongType, "the value must be a string", validation.StringType)
}

// NoneOf returns the error of a string that is not one of allowed.
func NoneOf(allowed []string) *validation.FieldError {
	return fail(validation.InvalidValue, "the value must be one of "+strings.Join(allowed, ", "), validation.Enum, allowed)
}

// notAUUID returns e, the error of a value that is not a UUID, with the kind and the reason.
func notAUUID(in Value, e *validation.FieldError) *validation.FieldError {
	if in.Kind != '"' {
		e.Kind = validation.UUIDType
		return e
	}
	e.Kind = validation.UUIDParsing
	e.Args = []any{fmt.Sprintf("invalid length: expected 36 characters with four hyphens, found %d", utf8.RuneCount(in.Text))}
	for i, r := range string(in.Text) {
		if !strings.ContainsRune("0123456789abcdefABCDEF-", r) {
			e.Args[0] = fmt.Sprintf("invalid character: expected [0-9a-fA-F-], found `%s` at %d", shownRune(r), i+1)
			break
		}
	}
	return e
}

// shownRune returns a character in a form that is safe in a message.
func shownRune(r rune) string {
	if q := strconv.QuoteRuneToASCII(r); len(q) > 3 {
		return q[1 : len(q)-1]
	}
	return string(r)
}
