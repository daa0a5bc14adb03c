package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
)

// houseAccounts holds the balances of the venue's own accounts after the events built so far, and the progress of
// unfinished charges.
type houseAccounts struct {
	clearing, fees, funding, rounding fixed.Money
	progress                          smallMap[*charge, *progress]
	sheet                             *arithmetic.Sheet // of the decision; usually nil
}

// progress is the state of a charge after the events built so far.
type progress struct {
	owing int
	left  fixed.Money
}

func (s *State) newHouseAccounts() houseAccounts {
	return houseAccounts{clearing: s.venue[ledger.Clearing], fees: s.venue[ledger.Fees], funding: s.venue[ledger.Funding],
		rounding: s.venue[ledger.Rounding], sheet: s.sheet}
}

// Approximate size in bytes of the event that posts a charge.
const chargeBytes = 480 + 3*postingBytes

// post returns the event that posts a charge, at index in its record; balance is the account's balance after it. The last
// posting of a funding charge moves the remainder from rounding to the venue's rounding account.
func (t *houseAccounts) post(at decide.Stamp, index int, d unpaidCharge, balance fixed.Money) decide.Event {
	a, c, x := d.position.account, d.position.instrument.contract, d.charge
	code := at.Derive(index)
	t.explainCharge(&d, balance)
	p := t.progress.get(x)
	if p == nil {
		p = &progress{x.owing, x.left}
		t.progress.put(x, p)
	}
	p.owing--
	e := DebtPosted{Code: code, CustomerCode: a.code, Broker: a.broker, Symbol: c.Symbol, Time: x.time, MarkPrice: c.MarkPrice(x.mark),
		Entries: []ledger.Posting{}}
	move := func(kind ledger.Type, on ledger.Account, balanceOn *fixed.Money, amount fixed.Money) {
		*balanceOn = balanceOn.Add(amount)
		e.Entries = append(e.Entries, ledger.Posting{Account: on, Type: kind, Currency: currency, Amount: amount, Balance: *balanceOn, Symbol: c.Symbol})
	}
	both := func(kind ledger.Type, on ledger.Account, balanceOn *fixed.Money) {
		if d.amount == 0 {
			return
		}
		e.Entries = append(e.Entries, a.posting(code, kind, d.amount, balance, c.Symbol))
		move(kind, on, balanceOn, -d.amount)
	}
	if x.kind == settlementCharge {
		both(ledger.Settlement, ledger.Clearing, &t.clearing)
		return &SettlementPosted{DebtPosted: e, Positions: []PositionHeld{held(a.code, c, d.position.size, d.cost)}}
	}
	both(ledger.FundingPayment, ledger.Funding, &t.funding)
	if p.left = p.left.Sub(d.amount); p.owing == 0 && p.left != 0 {
		move(ledger.FundingPayment, ledger.Funding, &t.funding, -p.left)
		move(ledger.FundingPayment, ledger.Rounding, &t.rounding, p.left)
	}
	return &FundingPosted{DebtPosted: e, PositionAmount: c.Amount(d.position.size), FundingRate: rateOf(x)}
}

// postCharges appends the postings of an account's unpaid charges to the events of a record, before the record's other
// events for the account. It returns the balance after them.
func (t *houseAccounts) postCharges(at decide.Stamp, events []decide.Event, a *account, owed []unpaidCharge) ([]decide.Event, fixed.Money) {
	balance := a.balance
	for _, d := range owed {
		balance = balance.Add(d.amount)
		events = append(events, t.post(at, len(events), d, balance))
	}
	return events, balance
}

// postFirst posts the unpaid charges that a record must post first if it touches an account but no position. rest is
// the net credit of the account's remaining unpaid charges.
func (t *houseAccounts) postFirst(s *State, at decide.Stamp, events []decide.Event, a *account) (after []decide.Event, balance fixed.Money, rest fixed.Wide) {
	owed, rest := s.firstCharges(a, nil, s.limit.charges)
	after, balance = t.postCharges(at, events, a, owed)
	return after, balance, rest
}
