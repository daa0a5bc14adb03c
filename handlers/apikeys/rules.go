package apikeys

import (
	"strconv"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
)

const (
	maxName = 64
	// prefixLength is the length of the stored and displayed part of a secret. It distinguishes keys and reveals 36
	// of the 256 random bits.
	prefixLength = len(access.APIKeyPrefix) + 6
)

func nameRule(s string) (code, message string) {
	if s == "" || utf8.RuneCountInString(s) > maxName {
		return validation.InvalidValue, "the name must be 1 to 64 characters long"
	}
	return "", ""
}

func networkRule(s string) (code, message string) {
	if _, ok := identity.ParseNetwork(s); !ok {
		return validation.InvalidValue, "an entry must be an address like 192.0.2.7, or a network like 192.0.2.0/24"
	}
	return "", ""
}

// scopes reads the scopes of the key.
func scopes(body *input.Form) []string {
	return body.Distinct("scopes", input.OneOf(identity.Scopes()...))
}

// networks reads the addresses from which the key may be used. An empty list would make the key useless; without the
// field, every address is allowed.
func networks(body *input.Form) []string {
	given := body.OptionalStrings("ip_allow_list", networkRule)
	if n := len(given.Value); given.Set && (n == 0 || n > identity.MaxAllowed) {
		body.Fault("ip_allow_list", validation.InvalidValue, "1 to "+strconv.Itoa(identity.MaxAllowed)+" addresses and networks may be named")
	}
	return given.Value
}
