package questionnaire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a version.
const (
	MaxQuestions = 500 // of a version; also the limit of answers in a response
	MaxOptions   = 500 // of a question
	maxLabel     = 2_000
	maxValue     = 128
	maxPosition  = 1_000_000
)

// Fault is an error in one member of a body.
type Fault struct {
	// Path leads to the member: names of members (string) and indices of arrays (int).
	Path []any
	// Type is a machine-readable error type, as validators of JSON bodies use it.
	Type    string
	Message string
}

// The error types.
const (
	Missing      = "missing"
	BadValue     = "value_error"
	BadEnum      = "enum"
	TextTooLong  = "string_too_long"
	ListTooLong  = "too_long"
	ListTooShort = "too_short"
)

type faults []Fault

func (f *faults) add(kind, message string, path ...any) {
	*f = append(*f, Fault{Path: slices.Clone(path), Type: kind, Message: message})
}

// CheckDraft returns all errors in the questions of a new version. It ignores their ids.
func CheckDraft(questions []Question) []Fault {
	var f faults
	switch {
	case len(questions) == 0:
		f.add(ListTooShort, "a version has at least one question", "questions")
	case len(questions) > MaxQuestions:
		f.add(ListTooLong, fmt.Sprintf("a version has at most %d questions", MaxQuestions), "questions")
		return f
	}
	values, positions := make(map[string]bool), make(map[int]bool)
	for i := range questions {
		q := &questions[i]
		at := []any{"questions", i}
		f.named(q.Label, q.Value, q.Position, values, positions, at)
		switch {
		case !slices.Contains(QuestionTypes(), q.Type):
			f.add(BadEnum, "must be one of "+typeNames(), append(at, "question_type")...)
		case q.Type.HasOptions():
			f.options(q.Options, at)
		case len(q.Options) > 0:
			f.add(BadValue, "only a choice has options", append(at, "options")...)
		}
	}
	return f
}

func (f *faults) options(options []Option, at []any) {
	path := append(slices.Clone(at), "options")
	switch {
	case len(options) == 0:
		f.add(ListTooShort, "a choice has at least one option", path...)
	case len(options) > MaxOptions:
		f.add(ListTooLong, fmt.Sprintf("a choice has at most %d options", MaxOptions), path...)
		return
	}
	values, positions := make(map[string]bool), make(map[int]bool)
	for i := range options {
		f.named(options[i].Label, options[i].Value, options[i].Position, values, positions, append(slices.Clone(path), i))
	}
}

// named validates the members that questions and options share. Programs identify an element by its value and pages sort
// by its position, so both must be unique within a list.
func (f *faults) named(label, value string, position int, values map[string]bool, positions map[int]bool, at []any) {
	in := func(name string) []any { return append(slices.Clone(at), name) }
	f.text(label, maxLabel, in("label"))
	f.text(value, maxValue, in("value"))
	if value != "" && values[value] {
		f.add(BadValue, "the value is there already", in("value")...)
	}
	values[value] = true
	switch {
	case position < 0 || position > maxPosition:
		f.add(BadValue, fmt.Sprintf("must be from 0 to %d", maxPosition), in("position")...)
	case positions[position]:
		f.add(BadValue, "the position is taken already", in("position")...)
	}
	positions[position] = true
}

func (f *faults) text(s string, limit int, path []any) {
	switch {
	case strings.TrimSpace(s) == "":
		f.add(Missing, "is required", path...)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		f.add(BadValue, "must be text without control characters", path...)
	case utf8.RuneCountInString(s) > limit:
		f.add(TextTooLong, fmt.Sprintf("must have at most %d characters", limit), path...)
	}
}

func typeNames() string {
	var names []string
	for _, t := range QuestionTypes() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}
