package decide

// Kind classifies a refusal by what the client can do about it.
type Kind int

// The kinds of refusal.
const (
	Invalid      Kind = iota // the request is at fault, whatever the state
	NotFound                 // what it names does not exist, or is not the actor's
	Conflict                 // the state forbids it: a terminal order, a taken code, a reused key
	Unacceptable             // understood and refused by a rule of business that leaves no record
	TooLarge                 // the record would exceed its limits
	Forbidden                // the actor may not
)

// Refusal is the answer to a command that changes nothing and leaves no record.
type Refusal struct {
	Kind    Kind
	Code    string // UPPER_SNAKE, as clients see it
	Field   string // the request's field at fault, if there is one
	Message string // a sentence for a person
	// Alarm is the kind of alarm that the owner raises for it; "" for none. It is for what an operator has to look at
	// whoever asked: a source of prices may not read its answers.
	Alarm string
}

// Error returns the code and the message.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Refuse makes a refusal.
func Refuse(kind Kind, code, message string) *Refusal {
	return &Refusal{Kind: kind, Code: code, Message: message}
}
