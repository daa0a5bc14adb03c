package web

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// A Rule validates the text of a string or a decimal. It returns an empty code if the text is valid.
type Rule func(text string) (code, message string)

// MaxLength allows at most n characters.
func MaxLength(n int) Rule {
	return func(s string) (string, string) {
		if utf8.RuneCountInString(s) > n {
			return validation.TooLong, "the text is longer than " + strconv.Itoa(n) + " characters"
		}
		return "", ""
	}
}

// Characters allows 1 to limit characters: letters, digits and those in extra. Codes, reference IDs and keys have
// this form.
func Characters(limit int, extra string) Rule {
	return func(s string) (string, string) {
		if s != "" && len(s) <= limit && onlyOf(s, extra) {
			return "", ""
		}
		return validation.InvalidValue, "the value must be 1 to " + strconv.Itoa(limit) + " characters out of letters, digits and " + extra
	}
}

func onlyOf(s, extra string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

// Reference allows reference IDs and idempotency keys: [A-Za-z0-9._:-]{1,64}.
func Reference(s string) (code, message string) {
	if isReference(s) {
		return "", ""
	}
	return Characters(maxReference, referenceExtra)(s)
}

const (
	maxReference   = 64
	referenceExtra = "._:-"
)

func isReference(s string) bool {
	return s != "" && len(s) <= maxReference && onlyOf(s, referenceExtra)
}

// CustomerCode allows customer codes: [A-Za-z0-9._-]{1,32}, except "." and "..". As path segments, these would refer
// to another path, and most clients and proxies would remove them.
func CustomerCode(s string) (code, message string) {
	if s == "." || s == ".." {
		return validation.InvalidValue, "the value must not be . or .., which no path can hold"
	}
	return Characters(32, "._-")(s)
}

// Positive allows decimals greater than zero.
func Positive(s string) (code, message string) {
	if strings.HasPrefix(s, "-") || strings.Trim(s, "0.") == "" {
		return validation.OutOfRange, "the value must be greater than zero"
	}
	return "", ""
}

// NotNegative allows decimals of zero or more.
func NotNegative(s string) (code, message string) {
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") != "" {
		return validation.OutOfRange, "the value must not be negative"
	}
	return "", ""
}

// MaxDecimals allows at most n digits after the point.
func MaxDecimals(n int) Rule {
	return func(s string) (string, string) {
		if i := strings.IndexByte(s, '.'); i >= 0 && len(s)-i-1 > n {
			return validation.TooManyDigits, "the value must have at most " + strconv.Itoa(n) + " decimals"
		}
		return "", ""
	}
}

// OneOf allows the given values.
func OneOf(allowed ...string) Rule {
	return func(s string) (string, string) {
		for _, a := range allowed {
			if s == a {
				return "", ""
			}
		}
		return validation.InvalidValue, "the value must be one of " + strings.Join(allowed, ", ")
	}
}

func judge(text string, rules []Rule) (code, message string) {
	for _, rule := range rules {
		if code, message := rule(text); code != "" {
			return code, message
		}
	}
	return "", ""
}
