package questionnaire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// The limits of a version.
const (
	MaxQuestions = 500 // of a version; also the limit of answers in a response
	MaxOptions   = 500 // of a question
	maxLabel     = 2_000
	maxValue     = 128
	maxPosition  = 1_000_000
)

// checks collects the errors in the questions of a version or in the answers of a response.
type checks struct{ validation.Errors }

// addListTooLong adds the error of a list that has more than limit items.
func (f *checks) addListTooLong(limit, items int, message string, path ...any) {
	f.Add(validation.FieldError{Kind: validation.ListTooLong, Args: []any{limit, items}, Path: slices.Clone(path),
		Message: fmt.Sprintf(message, limit)})
}

// addEmpty adds the error of a list that needs at least one item.
func (f *checks) addEmpty(message string, path ...any) {
	f.Add(validation.FieldError{Kind: validation.ListTooShort, Args: []any{1, 0}, Message: message, Path: slices.Clone(path)})
}

// CheckDraft returns all errors in the questions of a new version. It ignores their ids.
func CheckDraft(questions []Question) []validation.FieldError {
	var f checks
	switch {
	case len(questions) == 0:
		f.addEmpty("a version has at least one question", "questions")
	case len(questions) > MaxQuestions:
		f.addListTooLong(MaxQuestions, len(questions), "a version has at most %d questions", "questions")
		return f.List
	}
	values, positions := make(map[string]bool), make(map[int]bool)
	for i := range questions {
		q := &questions[i]
		at := []any{"questions", i}
		f.named(q.Label, q.Value, q.Position, values, positions, at)
		switch {
		case !slices.Contains(QuestionTypes(), q.Type):
			f.Add(validation.FieldError{Kind: validation.Enum, Args: []any{typeNames()}, Path: append(slices.Clone(at), "question_type"),
				Message: "must be one of " + strings.Join(typeNames(), ", ")})
		case q.Type.HasOptions():
			f.options(q.Options, at)
		case len(q.Options) > 0:
			f.AddKind(validation.ValueError, "only a choice has options", append(at, "options")...)
		}
	}
	return f.List
}

func (f *checks) options(options []Option, at []any) {
	path := append(slices.Clone(at), "options")
	switch {
	case len(options) == 0:
		f.addEmpty("a choice has at least one option", path...)
	case len(options) > MaxOptions:
		f.addListTooLong(MaxOptions, len(options), "a choice has at most %d options", path...)
		return
	}
	values, positions := make(map[string]bool), make(map[int]bool)
	for i := range options {
		f.named(options[i].Label, options[i].Value, options[i].Position, values, positions, append(slices.Clone(path), i))
	}
}

// named validates the members that questions and options share. Programs identify an element by its value and pages sort
// by its position, so both must be unique within a list.
func (f *checks) named(label, value string, position int, values map[string]bool, positions map[int]bool, at []any) {
	in := func(name string) []any { return append(slices.Clone(at), name) }
	f.text(label, maxLabel, in("label"))
	f.text(value, maxValue, in("value"))
	if value != "" && values[value] {
		f.AddKind(validation.ValueError, "the value is there already", in("value")...)
	}
	values[value] = true
	switch {
	case position < 0 || position > maxPosition:
		f.AddKind(validation.ValueError, fmt.Sprintf("must be from 0 to %d", maxPosition), in("position")...)
	case positions[position]:
		f.AddKind(validation.ValueError, "the position is taken already", in("position")...)
	}
	positions[position] = true
}

func (f *checks) text(s string, limit int, path []any) {
	switch {
	case strings.TrimSpace(s) == "":
		f.AddKind(validation.Missing, "is required", path...)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		f.AddKind(validation.ValueError, "must be text without control characters", path...)
	case utf8.RuneCountInString(s) > limit:
		f.AddTooLong(limit, path...)
	}
}

func typeNames() []string {
	var names []string
	for _, t := range QuestionTypes() {
		names = append(names, string(t))
	}
	return names
}
