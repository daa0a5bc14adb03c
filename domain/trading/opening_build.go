package trading

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// openingBuilder builds the record of an import and collects all errors. It never changes the state.
type openingBuilder struct {
	request
	file               *opening.File
	errs               validation.Errors
	header             *OpeningImported
	events             []decide.Event
	external, clearing fixed.Money // balances of the venue's accounts after the events so far
	accounts           map[*account]*openedAccount
	touched            []*openedAccount // in the order of their first lines
	markets            map[*instrument]*openedMarket
	listed             []*openedMarket // in the order of their first lines
}

// openedAccount is an account after the lines so far.
type openedAccount struct {
	account   *account
	balance   fixed.Money
	paid      bool // whether a line so far is its balance
	positions map[*instrument]*openedPosition
	line      int // the last one
}

// openedPosition is a position after the lines so far.
type openedPosition struct {
	size int64
	cost fixed.Money
	lots int64
}

// openedMarket sums up the lines of an instrument so far.
type openedMarket struct {
	instrument  *instrument
	long, short fixed.Wide // steps; short is negative
	cost        fixed.Wide
	line        int // the first one
}

// buildOpening builds the record of an import. If lines have errors, their sums and the margins are not judged.
func (r request) buildOpening(p *ImportOpening) *openingBuilder {
	b := &openingBuilder{request: r, file: &p.File, errs: validation.Errors{Limit: validation.MaxErrors}, external: r.venue[ledger.External], clearing: r.venue[ledger.Clearing],
		accounts: make(map[*account]*openedAccount), markets: make(map[*instrument]*openedMarket)}
	if p.Journal != "" && p.Journal != r.at.Journal.String() {
		b.fail(1, "journal", "FOREIGN_JOURNAL", "the file was made for another journal than %s", r.at.Journal)
		return b
	}
	b.header = &OpeningImported{Source: p.Source, SHA256: p.SHA256, BalanceTotal: p.BalanceTotal(), ImportedBy: r.command.Actor.Sub, Created: r.at.Time, Entries: []ledger.Posting{}}
	b.events = []decide.Event{b.header}
	// The header's postings come first in the record and depend on all lines. So payIn adds the lines' postings at the end.
	for i := range p.Lines {
		b.line(&p.Lines[i])
	}
	if len(b.errs.List) > 0 {
		return b
	}
	for _, m := range b.listed {
		b.balance(m)
	}
	if len(b.errs.List) > 0 {
		return b
	}
	b.payIn()
	for _, o := range b.touched {
		b.judge(o)
	}
	return b
}

func (b *openingBuilder) fail(line int, member, code, format string, args ...any) {
	path := opening.At(line)
	if member != "" {
		path = opening.At(line, member)
	}
	b.errs.Add(validation.FieldError{Path: path, Code: code, Message: fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)})
}

// line adds the event of a line, or its errors.
func (b *openingBuilder) line(l *opening.Line) {
	a := b.holder(l.CustomerCode)
	if a == nil {
		b.fail(l.Number, "customer_code", "UNKNOWN_CUSTOMER", "there is no customer %s: register it first", l.CustomerCode)
		return
	}
	o := b.accounts[a]
	if o == nil {
		o = &openedAccount{account: a, balance: a.balance, positions: make(map[*instrument]*openedPosition)}
		b.accounts[a] = o
		b.touched = append(b.touched, o)
		switch {
		case a.failing != nil:
			b.fail(l.Number, "customer_code", "ACCOUNT_IN_LIQUIDATION", "%s is in liquidation", a.code)
		case a.owes():
			b.fail(l.Number, "customer_code", "CHARGES_OUTSTANDING", "funding or settlement of %s is being posted: send the file again", a.code)
		}
	}
	o.line = l.Number
	if l.IsPosition() {
		b.position(o, l)
	} else {
		b.credit(o, l)
	}
}

// owes reports whether the account has charges that steps have yet to post.
func (a *account) owes() bool {
	for _, h := range a.positions {
		if len(h.unpaidCharges(nil)) > 0 {
			return true
		}
	}
	return false
}

// credit adds the event of a balance, without its postings.
func (b *openingBuilder) credit(o *openedAccount, l *opening.Line) {
	a := o.account
	amount, _ := fixed.MoneyOf(l.Amount)
	balance, fits := o.balance.Plus(amount)
	reference := opening.Reference(b.at.Sequence, l.Number)
	_, taken := a.transfers[reference] // by a transfer under earlier rules; the next record has other references
	switch {
	case l.Currency != currency:
		b.fail(l.Number, "currency", "UNSUPPORTED_CURRENCY", "the currency must be %s", currency)
		return
	case o.paid:
		b.fail(l.Number, "", "LINE_REPEATED", "an earlier line has the balance of %s", a.code)
		return
	case a.opened:
		b.fail(l.Number, "", "ALREADY_OPENED", "another file has brought the balance of %s", a.code)
		return
	case taken && b.ownsNames():
		b.fail(l.Number, "", "REFERENCE_ID_REUSED", "a transaction of %s is named %s: send the file again after the next record", a.code, reference)
		return
	case !fits || balance > maxNotional:
		b.fail(l.Number, "amount", "AMOUNT_ABOVE_MAXIMUM", "the venue cannot keep this much money")
		return
	}
	o.paid, o.balance = true, balance
	b.header.Balances++
	if a.isFund() {
		b.events = append(b.events, &InsuranceDeposited{Code: b.at.Derive(len(b.events)), Currency: currency, Amount: amount, Balance: balance, ReferenceID: reference, Created: b.at.Time})
		return
	}
	t := transaction(b.at, len(b.events), a, ledger.Deposit, amount, reference)
	t.Status, t.Balance = ledger.Completed, balance
	if b.sheet.On() {
		explainPosting(b.sheet, a.code, reference, balance.Sub(amount), amount, balance)
	}
	b.events = append(b.events, &DepositCompleted{Transaction: t})
}

// priced returns the instrument of a position, or nil if it can't have one.
func (b *openingBuilder) priced(l *opening.Line) *instrument {
	switch i := b.instruments[l.Symbol]; {
	case i == nil:
		b.fail(l.Number, "symbol", "UNKNOWN_SYMBOL", "there is no instrument %s", l.Symbol)
	case i.contract.Status == market.Withdrawn:
		b.fail(l.Number, "symbol", "INSTRUMENT_WITHDRAWN", "%s is withdrawn", l.Symbol)
	case i.mark == 0:
		b.fail(l.Number, "symbol", "INDEX_PRICE_MISSING", "%s has no index price, so nobody can tell its margin", l.Symbol)
	case i.stale:
		b.fail(l.Number, "symbol", "INDEX_PRICE_STALE", "the index price of %s is too old to tell its margin", l.Symbol)
	default:
		return i
	}
	return nil
}

// position adds the event of a position.
func (b *openingBuilder) position(o *openedAccount, l *opening.Line) {
	i := b.priced(l)
	if i == nil {
		return
	}
	a, c, h := o.account, i.contract, o.positions[i]
	if h == nil {
		was := a.on(i)
		h = &openedPosition{was.size, was.cost, was.lots}
		o.positions[i] = h
	}
	steps, whole := c.Steps(l.Amount)
	cost, countable := c.Cost(l.EntryPrice, steps)
	size, fits := fixed.AddInt64(h.size, steps)
	total, sums := h.cost.Plus(cost)
	switch bit := int64(1) << l.Lot; {
	case a.on(i).lots&bit != 0:
		b.fail(l.Number, "lot", "ALREADY_OPENED", "another file has brought lot %d of %s on %s", l.Lot, a.code, l.Symbol)
	case h.lots&bit != 0:
		b.fail(l.Number, "lot", "LINE_REPEATED", "an earlier line has lot %d of %s on %s", l.Lot, a.code, l.Symbol)
	case !whole || steps == 0:
		b.fail(l.Number, "amount", "INVALID_AMOUNT_STEP", "the amount must be a whole multiple of %s", c.AmountStep)
	case h.size != 0 && (h.size > 0) != (steps > 0):
		b.fail(l.Number, "amount", "POSITION_OPPOSITE", "%s holds %s of %s: a file does not close positions", a.code, c.Amount(h.size), l.Symbol)
	case countable && cost == 0:
		b.fail(l.Number, "entry_price", "INVALID_PRICE", "the position would cost nothing: the price is too low")
	case !countable || !sums || !fits || total.Abs() > maxNotional || l.EntryPrice.Cmp(fixed.Decimal{Coef: market.MaxPrice}) >= 0:
		b.fail(l.Number, "entry_price", "POSITION_ABOVE_MAXIMUM", "the position would be worth too much to be counted")
	default:
		h.size, h.cost, h.lots = size, total, h.lots|bit
		b.count(i, l, steps, cost)
		b.header.Positions++
		if b.sheet.On() && !a.isFund() {
			explainOpened(b.sheet, a.code, l, c, total.Sub(cost), total)
		}
		b.events = append(b.events, &PositionOpened{CustomerCode: a.code, Broker: a.broker, Symbol: l.Symbol, Amount: c.Amount(steps), EntryPrice: l.EntryPrice.Trim(), Cost: cost,
			Lot: l.Lot, Line: l.Number, Positions: []PositionHeld{held(a.code, c, size, total)}})
	}
}

// count adds a position to the sums of the instrument.
func (b *openingBuilder) count(i *instrument, l *opening.Line, steps int64, cost fixed.Money) {
	m := b.markets[i]
	if m == nil {
		m = &openedMarket{instrument: i, line: l.Number}
		b.markets[i] = m
		b.listed = append(b.listed, m)
	}
	m.cost = m.cost.Add(cost.Wide())
	if steps > 0 {
		m.long = m.long.Add(fixed.WideOf(steps))
	} else {
		m.short = m.short.Add(fixed.WideOf(steps))
	}
}

// balance checks the sums of an instrument, and adds the postings of the sum of all costs on it.
func (b *openingBuilder) balance(m *openedMarket) {
	c := m.instrument.contract
	if m.long.Add(m.short).Sign() != 0 {
		b.fail(m.line, "symbol", "POSITIONS_UNBALANCED", "the long positions on %s sum to %s, and the short ones to %s: each long position needs a short one",
			c.Symbol, amountOf(c, m.long), amountOf(c, m.short))
		return
	}
	added, fits := m.long.Int64()
	open, sums := fixed.AddInt64(m.instrument.openInterest, added)
	if !fits || !sums || open == maxInt64 {
		b.tooMuch(m)
		return
	}
	if n, fits := c.Notional(c.LimitBound(true, m.instrument.mark), open+1); !fits || n > maxNotional {
		b.tooMuch(m)
		return
	}
	cost, fits := m.cost.Money()
	clearing, sums := b.clearing.Plus(-cost)
	external, countable := b.external.Plus(cost)
	if !fits || !sums || !countable || clearing.Abs() > maxNotional || external.Abs() > maxNotional {
		b.tooMuch(m)
		return
	}
	if cost == 0 {
		return
	}
	b.clearing, b.external = clearing, external
	b.header.Entries = append(b.header.Entries,
		ledger.Posting{Account: ledger.Clearing, Type: ledger.Transfer, Currency: currency, Amount: -cost, Balance: clearing, Symbol: c.Symbol},
		ledger.Posting{Account: ledger.External, Type: ledger.Transfer, Currency: currency, Amount: cost, Balance: external, Symbol: c.Symbol})
}

const maxInt64 = 1<<63 - 1

func (b *openingBuilder) tooMuch(m *openedMarket) {
	b.fail(m.line, "symbol", "POSITION_ABOVE_MAXIMUM", "the open positions on %s would be worth too much to be counted", m.instrument.contract.Symbol)
}

// amountOf prints a sum of steps in contracts.
func amountOf(c *market.Contract, steps fixed.Wide) string {
	if n, ok := steps.Int64(); ok {
		if d, ok := c.AmountStep.Times(n); ok {
			return d.String()
		}
	}
	return "more than can be counted"
}

// payIn adds the postings of the balances.
func (b *openingBuilder) payIn() {
	for _, e := range b.events {
		amount := fixed.Money(0)
		switch e := e.(type) {
		case *DepositCompleted:
			amount = e.Amount
		case *InsuranceDeposited:
			amount = e.Amount
		default:
			continue
		}
		external, fits := b.external.Plus(-amount)
		if !fits || external.Abs() > maxNotional {
			b.errs.Add(validation.FieldError{Code: "AMOUNT_ABOVE_MAXIMUM", Message: "the venue cannot keep this much money"})
			return
		}
		b.external = external
		switch e := e.(type) {
		case *DepositCompleted:
			e.Entries = outside(e.Transaction, external)
		case *InsuranceDeposited:
			e.Entries = paidToFund(e, external)
		}
	}
}

// judge checks the account after all lines. The insurance fund needs no margin.
func (b *openingBuilder) judge(o *openedAccount) {
	a := o.account
	total := margin.Standing{Balance: o.balance.Wide(), Pending: a.pending.Wide()}
	for _, h := range a.positions {
		if o.positions[h.instrument] == nil {
			total.Add(h.exposure())
		}
	}
	for _, m := range b.listed {
		if after := o.positions[m.instrument]; after != nil {
			e := a.on(m.instrument).exposure()
			e.Size, e.Cost = after.size, after.cost
			total.Add(e)
		}
	}
	switch {
	case total.Equity().Abs().Cmp(maxNotional.Wide()) > 0:
		b.fail(o.line, "amount", "AMOUNT_ABOVE_MAXIMUM", "the equity of %s would be beyond %s %s", a.code, maxNotional, currency)
	case !a.isFund() && len(o.positions) > 0 && total.Lacks():
		b.fail(o.line, "customer_code", "BELOW_MAINTENANCE_MARGIN", "%s would have an equity of %s, and needs a maintenance margin of %s", a.code,
			total.Equity().Capped(), total.Maintenance.Capped())
	}
}
