package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Decide returns the decision on a command. It implements decide.State.
func (s *State) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	common, known := c.Payload.(decide.Payload)
	if !known || common.CommandType() != c.Type {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	if err := confined(c.Actor, common); err != nil {
		return decide.Decision{}, err
	}
	if d, done, err := s.core.Govern(at, c, governed{s}); done {
		return d, err
	}
	return s.act(at, c)
}

// act decides a command that needs no second person, or has one.
func (s *State) act(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	if d, done, err := s.core.Decide(at, c, s); done {
		return d, err
	}
	d, err := commandTable.Decide(request{s, at, c}, c)
	d = s.asOfRules(d)
	if len(d.Events) > 0 && s.RecordsInputs() {
		if partial, ok := c.Payload.(partialPayload); ok {
			d.Input = decide.EncodeInput(partial.input(d.Events))
		}
	}
	return d, err
}

// request is a command that is being decided. It only reads the state.
type request struct {
	*State
	at      decide.Stamp
	command decide.Command
}

// accepted returns an accepted decision that records these events.
func accepted(events ...decide.Event) (decide.Decision, error) {
	balanced(events)
	return decide.Decision{Outcome: decide.Accepted, Events: events}, nil
}

// repeat decides a command with a known reference_id: the earlier record if the request is the same, else a refusal.
func repeat(known, fingerprint string, sequence int64) (decide.Decision, error) {
	if known != fingerprint {
		return decide.Decision{}, ReferenceReused()
	}
	return decide.Decision{Repeated: true, Repeat: sequence}, nil
}

// ReferenceReused returns the refusal of a request with the reference_id of a different one.
func ReferenceReused() error {
	return &decide.Refusal{Kind: decide.Conflict, Code: "REFERENCE_ID_REUSED", Field: "reference_id", Message: "the reference_id was used for another request"}
}

// balanced panics unless a record's postings sum to zero in every currency and each has an amount and exactly one
// owner.
func balanced(events []decide.Event) {
	var sum fixed.Money
	for _, e := range events {
		posted, ok := e.(ledger.Posted)
		if !ok {
			continue
		}
		for _, p := range posted.Postings() {
			// A row without an amount could not be shown. One with both an account and a customer would be counted in
			// two sums.
			if p.Currency != currency || p.Amount == 0 || (p.Account == "") == (p.CustomerCode == "") {
				panic("trading: a posting is of nothing, of nobody, or in another currency")
			}
			sum = sum.Add(p.Amount)
		}
	}
	// An imbalance would create money, and no later record could correct it. A panic records nothing and answers 500.
	if sum != 0 {
		panic("trading: the postings of a record do not sum to zero")
	}
}

// errUnknownCustomer is the refusal for a customer that does not exist or belongs to another broker. A client cannot
// distinguish the two.
func errUnknownCustomer() error {
	return &decide.Refusal{Kind: decide.NotFound, Code: "UNKNOWN_CUSTOMER", Field: "customer_code", Message: "there is no such customer"}
}

// customerOf returns a customer of the actor's broker, or of any broker for the engine's own commands. confined has
// checked before that a token for one account names that account.
func (r request) customerOf(code string) (*account, error) {
	a := r.accounts[code]
	if a == nil || r.command.Actor.System == "" && r.command.Actor.Broker != a.broker {
		return nil, errUnknownCustomer()
	}
	return a, nil
}

// confined refuses the commands that a token for one account may not give: anything about another account, even a
// repeated request, and everything but the account's own orders and leverage.
func confined(actor decide.Actor, p decide.Payload) error {
	if actor.Customer == "" {
		return nil
	}
	about, ok := p.(AccountPayload)
	switch {
	case !ok:
		return decide.Refuse(decide.Forbidden, "FORBIDDEN", "the token is confined to one account")
	case about.Account() != actor.Customer:
		return errUnknownCustomer()
	}
	return nil
}

// anyCustomer returns a customer of any broker, for the operator.
func (r request) anyCustomer(code string) (*account, error) {
	if a := r.accounts[code]; a != nil {
		return a, nil
	}
	return nil, errUnknownCustomer()
}

// listed returns an instrument that an order names, unless it is withdrawn. Its refusal is Invalid.
func (r request) listed(symbol string) (*instrument, error) {
	if i := r.instruments[symbol]; i != nil && i.contract.Status != market.Withdrawn {
		return i, nil
	}
	return nil, &decide.Refusal{Kind: decide.Invalid, Code: "UNKNOWN_SYMBOL", Field: "symbol", Message: "there is no such instrument"}
}

// traded returns an instrument that a request path names, unless it is withdrawn. Its refusal is NotFound.
func (r request) traded(symbol string) (*instrument, error) {
	i, err := r.listed(symbol)
	if err != nil {
		return nil, &decide.Refusal{Kind: decide.NotFound, Code: "UNKNOWN_SYMBOL", Field: "symbol", Message: "there is no such instrument"}
	}
	return i, nil
}

// instrumentToChange returns an instrument that an operator's request path names. A withdrawn one is a Conflict.
func (r request) instrumentToChange(symbol string) (*instrument, error) {
	i := r.instruments[symbol]
	switch {
	case i == nil:
		return nil, &decide.Refusal{Kind: decide.NotFound, Code: "UNKNOWN_SYMBOL", Field: "symbol", Message: "there is no such instrument"}
	case i.contract.Status == market.Withdrawn:
		return nil, decide.Refuse(decide.Conflict, "INSTRUMENT_WITHDRAWN", "the instrument was withdrawn")
	}
	return i, nil
}
