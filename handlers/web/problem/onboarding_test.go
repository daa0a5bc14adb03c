package problem

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// TestWordings renders an error of every kind with the arguments that its comment names.
func TestWordings(t *testing.T) {
	args := map[string][]any{validation.Enum: {[]string{"a", "b", "c"}}, validation.StringTooShort: {1, "character"}, validation.StringTooLong: {9, "bytes"},
		validation.StringPattern: {"^a$"}, validation.LessThanEqual: {int64(7)}, validation.GreaterThanEqual: {int64(7)},
		validation.ListTooShort: {1, 0}, validation.ListTooLong: {2, 3}, validation.UUIDParsing: {"it is long"},
		validation.JSONInvalid: {17}, validation.MultipartInvalid: {"it has no end"}}
	for kind := range wordings {
		d := detailOf(&validation.FieldError{Kind: kind, Args: args[kind], Path: validation.At("x")})
		if d.Type != kind || d.Message == "" || strings.Contains(d.Message, "%") {
			t.Errorf("%s: %+v", kind, d)
		}
	}
	for kind, want := range map[string]string{validation.Enum: "Input should be 'a', 'b' or 'c'",
		validation.ListTooShort: "List should have at least 1 item after validation, not 0", validation.ListTooLong: "List should have at most 2 items after validation, not 3",
		validation.StringTooLong: "String should have at most 9 bytes", validation.UUIDParsing: "Input should be a valid UUID, it is long"} {
		if d := detailOf(&validation.FieldError{Kind: kind, Args: args[kind]}); d.Message != want {
			t.Errorf("%s, want %s", d.Message, want)
		}
	}
}
