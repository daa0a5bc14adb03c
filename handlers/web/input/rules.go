package input

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// MaxLength allows at most n characters.
func MaxLength(n int) form.Rule {
	return func(s string) (string, string) {
		if utf8.RuneCountInString(s) > n {
			return validation.TooLong, "the text is longer than " + strconv.Itoa(n) + " characters"
		}
		return "", ""
	}
}

// Visible allows texts with a visible character.
func Visible(s string) (code, message string) {
	if IsBlank(s) {
		return validation.InvalidValue, "the text holds no visible character"
	}
	return "", ""
}

// IsBlank reports whether a text has no visible character: it is empty, or has only white space and characters of no
// width.
func IsBlank(s string) bool { return !strings.ContainsFunc(s, isVisible) }

func isVisible(r rune) bool {
	const emptyBraille = '\u2800' // a symbol without dots
	return r != emptyBraille && !unicode.IsSpace(r) &&
		!unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// BrokerCode allows broker codes: [A-Za-z0-9._-]{1,32}.
func BrokerCode(s string) (code, message string) {
	return form.Characters{Limit: 32, Extra: "._-"}.Rule(s)
}

// CustomerCode allows customer codes: [A-Za-z0-9._-]{1,32}, except "." and "..". As path segments, these would refer
// to another path, and most clients and proxies would remove them.
func CustomerCode(s string) (code, message string) {
	if s == "." || s == ".." {
		return validation.InvalidValue, "the value must not be . or .., which no path can hold"
	}
	return BrokerCode(s)
}

// OneOf allows the given values.
func OneOf(allowed ...string) form.Rule {
	return func(s string) (string, string) {
		for _, a := range allowed {
			if s == a {
				return "", ""
			}
		}
		return validation.InvalidValue, "the value must be one of " + strings.Join(allowed, ", ")
	}
}

func judge(text string, rules []form.Rule) (code, message string) {
	for _, rule := range rules {
		if code, message := rule(text); code != "" {
			return code, message
		}
	}
	return "", ""
}
