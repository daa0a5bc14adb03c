package decide

import "strings"

// Kind classifies a refusal by the client's possible reaction.
type Kind int

// The kinds of refusal.
const (
	Invalid      Kind = iota // the request is invalid in every state
	NotFound                 // an object that the request names does not exist or belongs to another actor
	Conflict                 // the state forbids the command: a terminal order, a taken code, a reused key
	Unacceptable             // a business rule refuses a valid request, and the refusal is not recorded
	TooLarge                 // the record would exceed its limits
	Forbidden                // the actor lacks the permission
)

// Refusal answers a command that changes nothing and leaves no record.
type Refusal struct {
	Kind    Kind
	Code    string // in UPPER_SNAKE case; clients see it
	Field   string // the invalid field of the request, if any
	Message string // a sentence for people
	// Alarm is the kind of alarm that the owner raises for the refusal, or "" for none. It is set where an operator must
	// act, no matter which client sent the request: a price source may not read its answers.
	Alarm string
}

// Error returns the code and the message.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Refuse makes a refusal.
func Refuse(kind Kind, code, message string) *Refusal {
	return &Refusal{Kind: kind, Code: code, Message: message}
}

// InvalidField refuses a request for an invalid field, with the code INVALID_ and the field in capitals.
func InvalidField(field, message string) *Refusal {
	return &Refusal{Kind: Invalid, Code: "INVALID_" + strings.ToUpper(field), Field: field, Message: message}
}
