package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Decide says what the command causes. It implements decide.State.
func (s *State) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	asked, known := c.Payload.(decide.Payload)
	if !known || asked.CommandType() != c.Type {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	if err := confined(c.Actor, asked); err != nil {
		return decide.Decision{}, err
	}
	if d, done, err := s.core.Decide(at, c, s); done {
		return d, err
	}
	p, own := asked.(payload)
	if !own {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	d, err := p.decide(s, at, c)
	return s.asOfRules(d), err
}

// accepted is a decision for one record of these events.
func accepted(events ...decide.Event) (decide.Decision, error) {
	balanced(events)
	return decide.Decision{Outcome: decide.Accepted, Events: events}, nil
}

// repeat answers a reference_id that is known already.
func repeat(known, fingerprint string, sequence int64) (decide.Decision, error) {
	if known != fingerprint {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Conflict, Code: "REFERENCE_ID_REUSED", Field: "reference_id",
			Message: "the reference_id was used for another request"}
	}
	return decide.Decision{Repeated: true, Repeat: sequence}, nil
}

// balanced asserts that a record's postings sum to zero in every currency, and that none is of nothing.
func balanced(events []decide.Event) {
	var sum fixed.Money
	for _, e := range events {
		posted, ok := e.(ledger.Posted)
		if !ok {
			continue
		}
		for _, p := range posted.Postings() {
			// A row of nothing could not be shown, and one with both an account and a customer would be counted in two sums.
			if p.Currency != currency || p.Amount == 0 || (p.Account == "") == (p.CustomerCode == "") {
				panic("trading: a posting is of nothing, of nobody, or in another currency")
			}
			sum = sum.Add(p.Amount)
		}
	}
	// Money would have come from nowhere, and no later record could mend it: better no record, and a 500.
	if sum != 0 {
		panic("trading: the postings of a record do not sum to zero")
	}
}

// errUnknownCustomer is the answer for a customer that is not there or is another broker's: the two look the same.
func errUnknownCustomer() error {
	return &decide.Refusal{Kind: decide.NotFound, Code: "UNKNOWN_CUSTOMER", Field: "customer_code", Message: "there is no such customer"}
}

// customerOf returns a customer that the actor may act for: one of its broker. (That a token for one account is about
// that account was seen to before: confined.)
func (s *State) customerOf(actor decide.Actor, code string) (*account, error) {
	a := s.accounts[code]
	if a == nil || actor.System == "" && actor.Broker != a.broker {
		return nil, errUnknownCustomer()
	}
	return a, nil
}

// confined refuses what a token for one account may not ask for: anything about another account, whatever is remembered
// of the same request, and everything that is not about the account's own orders.
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

// anyCustomer returns a customer of whatever broker, for the operator.
func (s *State) anyCustomer(code string) (*account, error) {
	if a := s.accounts[code]; a != nil {
		return a, nil
	}
	return nil, errUnknownCustomer()
}

// listed returns an instrument that orders may name.
func (s *State) listed(symbol string) (*instrument, error) {
	if i := s.instruments[symbol]; i != nil && i.contract.Status != market.Withdrawn {
		return i, nil
	}
	return nil, &decide.Refusal{Kind: decide.Invalid, Code: "UNKNOWN_SYMBOL", Field: "symbol", Message: "there is no such instrument"}
}

// traded returns a listed instrument that a path names.
func (s *State) traded(symbol string) (*instrument, error) {
	i, err := s.listed(symbol)
	if err != nil {
		return nil, &decide.Refusal{Kind: decide.NotFound, Code: "UNKNOWN_SYMBOL", Field: "symbol", Message: "there is no such instrument"}
	}
	return i, nil
}

// instrumentToChange returns an instrument that a path of the operator's names, and which may be withdrawn already.
func (s *State) instrumentToChange(symbol string) (*instrument, error) {
	i := s.instruments[symbol]
	switch {
	case i == nil:
		return nil, &decide.Refusal{Kind: decide.NotFound, Code: "UNKNOWN_SYMBOL", Field: "symbol", Message: "there is no such instrument"}
	case i.contract.Status == market.Withdrawn:
		return nil, decide.Refuse(decide.Conflict, "INSTRUMENT_WITHDRAWN", "the instrument was withdrawn")
	}
	return i, nil
}
