package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// Party is an account that money moves on: that of a customer, or one of the venue's own.
type Party struct {
	CustomerCode string         `json:"customer_code,omitzero"`
	Account      ledger.Account `json:"account,omitzero"`
}

// String returns the name of the account.
func (p Party) String() string { return cmp.Or(p.CustomerCode, string(p.Account)) }

func compareParties(a, b Party) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.CustomerCode, b.CustomerCode))
}

// movement is a sum of postings of one record.
type movement struct {
	Party
	kind ledger.Type
}

// effects are the consequences of a decision, without those that follow from earlier decisions: balances, positions, and ids.
type effects struct {
	accepted bool
	outcome  string // "accepted", or why it was not
	fills    []string
	money    map[movement]fixed.Money
	others   []string
}

// refused returns the effects of a command that leaves no record, or of a step that has nothing to do.
func refused(why string) *effects { return &effects{outcome: why} }

// refusedFor returns the effects of an error of Decide.
func refusedFor(err error) *effects {
	if r := new(decide.Refusal); errors.As(err, &r) {
		return refused("refused: " + r.Code)
	}
	return refused(err.Error())
}

// effectsOf returns the effects of a decision.
func effectsOf(outcome decide.Outcome, events []decide.Event) *effects {
	f := &effects{accepted: outcome != decide.Rejected, outcome: string(decide.Accepted), money: moneyIn(events)}
	for _, e := range events {
		switch e := e.(type) {
		case *trading.TradeExecuted:
			f.fills = append(f.fills, fmt.Sprintf("%s %s × %s, %s, taker %s, maker %s", e.Symbol, e.Price, e.Amount, e.Type, e.Taker.CustomerCode, e.Maker.CustomerCode))
		case *trading.OrderRejected:
			f.outcome = fmt.Sprintf("%s: %s", decide.Rejected, e.Reason)
		default:
			f.others = append(f.others, describe(e))
		}
	}
	return f
}

// moneyIn returns the sums of the postings of a record.
func moneyIn(events []decide.Event) map[movement]fixed.Money {
	var sums map[movement]fixed.Money
	for _, e := range events {
		posted, ok := e.(ledger.Posted)
		if !ok {
			continue
		}
		for _, p := range posted.Postings() {
			if sums == nil {
				sums = make(map[movement]fixed.Money)
			}
			m := movement{Party{p.CustomerCode, p.Account}, p.Type}
			sums[m] = sums[m].Add(p.Amount)
		}
	}
	return sums
}

// describe returns the content of an event that is neither a trade nor a rejection.
func describe(e decide.Event) string {
	if o, ok := e.(trading.OrderEvent); ok {
		order, reason := o.After(), ""
		if order.Reason != "" {
			reason = ", " + string(order.Reason)
		}
		return fmt.Sprintf("%s of %s, %s of %s filled%s", e.EventType(), order.CustomerCode, order.FilledAmount, order.Amount, reason)
	}
	switch e := e.(type) {
	case *trading.FundingFixed:
		return fmt.Sprintf("%s %s: rate %s at %s, missed %t", e.EventType(), e.Symbol, e.FundingRate, e.MarkPrice, e.Missed)
	case *trading.IndexUpdated:
		premium := "none"
		if e.Premium != nil {
			premium = e.Premium.String()
		}
		return fmt.Sprintf("%s %s: mark %s, premium %s", e.EventType(), e.Symbol, e.MarkPrice, premium)
	case *trading.GuardSet:
		return fmt.Sprintf("%s %s: %t", e.EventType(), e.Symbol, e.Stale)
	case *trading.Step:
		return fmt.Sprintf("%s %s", e.EventType(), e.Work)
	}
	return e.EventType()
}

// moneyLines returns the sums in words, those of one record in a fixed order.
func (f *effects) moneyLines() []string {
	keys := make([]movement, 0, len(f.money))
	for m := range f.money {
		keys = append(keys, m)
	}
	slices.SortFunc(keys, func(a, b movement) int {
		return cmp.Or(compareParties(a.Party, b.Party), cmp.Compare(a.kind, b.kind))
	})
	lines := make([]string, len(keys))
	for n, m := range keys {
		lines[n] = fmt.Sprintf("%s %s %s", m.Party, m.kind, f.money[m])
	}
	return lines
}

// Kind classifies a difference by the first of these in which two decisions differ.
type Kind string

// The kinds.
const (
	Acceptance Kind = "acceptance" // accepted in one world; in the other rejected, refused, or not due
	Reason     Kind = "reason"     // accepted in neither, for different reasons
	Fills      Kind = "fills"      // other trades
	Money      Kind = "money"      // other fees, profits, funding, or settlements for the same trades
	Other      Kind = "other"      // any other content of the events
	// Liquidations are those that begin in one world while the account is not in liquidation in the other.
	Liquidations Kind = "liquidation"
	// Steps are records of due work that only the other world has. Only a cumulative run has them.
	Steps Kind = "step"
)

// compare returns the kind of difference between two decisions, or "", and the lines that differ of each.
func compare(recorded, decided *effects) (kind Kind, was, is []string) {
	switch {
	case recorded.accepted != decided.accepted:
		return Acceptance, []string{recorded.outcome}, []string{decided.outcome}
	case recorded.outcome != decided.outcome:
		return Reason, []string{recorded.outcome}, []string{decided.outcome}
	case !slices.Equal(recorded.fills, decided.fills):
		return Fills, recorded.fills, decided.fills
	}
	if was, is = recorded.moneyLines(), decided.moneyLines(); !slices.Equal(was, is) {
		return Money, was, is
	}
	if !slices.Equal(recorded.others, decided.others) {
		return Other, recorded.others, decided.others
	}
	return "", nil, nil
}
