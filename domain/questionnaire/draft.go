package questionnaire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of what is asked.
const (
	MaxQuestions = 500 // of a version; as many answers a response may have
	MaxOptions   = 500 // of a question
	maxLabel     = 2_000
	maxValue     = 128
	maxPosition  = 1_000_000
)

// Fault says what is wrong with one member of a body.
type Fault struct {
	// Path leads to the member: names of members (string) and places in arrays (int).
	Path []any
	// Type is a word for programs, as validators of JSON bodies use it.
	Type    string
	Message string
}

// The types of faults.
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

// CheckDraft returns all that is wrong with the questions of a version that is to be made; their ids are not looked at.
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

// named checks what questions and options have in common. Programs find one by its value and pages by its position, so
// neither may stand twice among its likes.
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
