package verify

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// Sums checks the ledger by the events of records alone, without a state and without the rules. After each record
//
//   - its postings sum to zero in each currency, and the balance in each posting is the sum of the account's postings;
//   - the sizes of all positions on an instrument sum to zero;
//   - the costs of all positions on an instrument, and the postings to the clearing account for it, sum to zero.
//
// With Partial set the log is read from a later record on. Then the first posting of an account tells its earlier balance, and
// positions are not checked. The zero Sums has seen no record. Records are passed in order.
type Sums struct {
	Partial bool

	balances map[holder]*fixed.Money
	held     map[positionKey]*position
	markets  map[string]*market
	record   []total   // of the record that is added; a record has one currency or two
	changed  []*market // by the record that is added
}

// holder is an account of a customer or of the venue, in a currency.
type holder struct {
	account            ledger.Account
	customer, currency string
}

// positionKey is where a customer holds a position.
type positionKey struct{ customer, symbol string }

// position is the position of a customer on an instrument.
type position struct {
	size int64 // in 10⁻⁸
	cost fixed.Money
}

// market has the sums of an instrument.
type market struct {
	symbol          string
	sizes           fixed.Wide // of the positions, in 10⁻⁸
	costs, clearing fixed.Wide // in 10⁻⁸ of the currency
}

type total struct {
	currency string
	amount   fixed.Wide
}

// Add adds the events of the next record. After an error the Sums must not be used.
func (s *Sums) Add(events []decide.Event) error {
	if s.balances == nil {
		s.balances, s.held, s.markets = make(map[holder]*fixed.Money), make(map[positionKey]*position), make(map[string]*market)
	}
	s.record, s.changed = s.record[:0], s.changed[:0]
	for _, e := range events {
		if posted, ok := e.(ledger.Posted); ok {
			if err := s.post(posted.Postings()); err != nil {
				return err
			}
		}
		if changed, ok := e.(trading.PositionEvent); ok && !s.Partial {
			if err := s.hold(changed.PositionsAfter()); err != nil {
				return err
			}
		}
	}
	return s.end()
}

func (s *Sums) post(postings []ledger.Posting) error {
	for i := range postings {
		p := &postings[i]
		if p.Amount == 0 || (p.Account == "") == (p.CustomerCode == "") {
			return fmt.Errorf("a posting of %s %s is of nothing, or not of one account", p.Amount, p.Currency)
		}
		who := holder{p.Account, p.CustomerCode, p.Currency}
		balance := s.balances[who]
		if balance == nil {
			balance = new(fixed.Money)
			s.balances[who] = balance
			if s.Partial {
				*balance = p.Balance.Sub(p.Amount)
			}
		}
		if after, ok := balance.Plus(p.Amount); !ok || after != p.Balance {
			return fmt.Errorf("a posting of %s %s to %s%s gives the balance %s, and the balance before it was %s",
				p.Amount, p.Currency, p.Account, p.CustomerCode, p.Balance, *balance)
		}
		*balance = p.Balance
		s.add(p.Currency, p.Amount)
		if p.Account == ledger.Clearing && !s.Partial {
			m := s.market(p.Symbol)
			m.clearing = m.clearing.Add(p.Amount.Wide())
		}
	}
	return nil
}

func (s *Sums) add(currency string, amount fixed.Money) {
	for i := range s.record {
		if t := &s.record[i]; t.currency == currency {
			t.amount = t.amount.Add(amount.Wide())
			return
		}
	}
	s.record = append(s.record, total{currency, amount.Wide()})
}

// market returns the sums of an instrument that the record changes.
func (s *Sums) market(symbol string) *market {
	m := s.markets[symbol]
	if m == nil {
		m = &market{symbol: symbol}
		s.markets[symbol] = m
	}
	for _, c := range s.changed {
		if c == m {
			return m
		}
	}
	s.changed = append(s.changed, m)
	return m
}

func (s *Sums) hold(positions []trading.PositionHeld) error {
	for i := range positions {
		p := &positions[i]
		at := positionKey{p.CustomerCode, p.Symbol}
		held, m := s.held[at], s.market(p.Symbol)
		is, ok := p.Amount.In(8)
		if !ok {
			return fmt.Errorf("the position of %s on %s is %s, which is no amount", p.CustomerCode, p.Symbol, p.Amount)
		}
		if held == nil {
			held = new(position)
			s.held[at] = held
		}
		m.sizes = m.sizes.Sub(fixed.WideOf(held.size)).Add(fixed.WideOf(is))
		m.costs = m.costs.Sub(held.cost.Wide()).Add(p.Cost.Wide())
		if *held = (position{is, p.Cost}); is == 0 && p.Cost == 0 {
			delete(s.held, at)
		}
	}
	return nil
}

// end checks the sums after a record.
func (s *Sums) end() error {
	for _, t := range s.record {
		if t.amount.Sign() != 0 {
			return fmt.Errorf("the postings of the record sum to %s × 10⁻⁸ %s, and not to zero", t.amount.Big(), t.currency)
		}
	}
	for _, m := range s.changed {
		if m.sizes.Sign() != 0 {
			return fmt.Errorf("the positions on %s sum to %s × 10⁻⁸, and not to zero", m.symbol, m.sizes.Big())
		}
		if sum := m.costs.Add(m.clearing); sum.Sign() != 0 {
			return fmt.Errorf("the costs of the positions on %s and the clearing account sum to %s × 10⁻⁸, and not to zero", m.symbol, sum.Big())
		}
	}
	return nil
}
