package readmodels_test

import (
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// period is a day or an hour, as a test counts it from the events and reads it from the fold at the end.
type period struct {
	start       time.Time
	first, last int64
	pnl         map[string]pnl
	transfers   map[string]fixed.Money
	funding     map[ofSymbol]fixed.Money
	fees        map[ofSymbol]fee
	struck      map[[3]string]struck
	market      map[string]traded
	venue       map[[2]string]fixed.Money

	posted    map[string]bool // customers with a posting until its end; shared by all periods
	balances  map[string]fixed.Money
	positions map[ofSymbol]standing
	books     map[string][]string
}

func newPeriod(start time.Time, first int64, posted map[string]bool) *period {
	return &period{start: start, first: first, pnl: map[string]pnl{}, transfers: map[string]fixed.Money{}, funding: map[ofSymbol]fixed.Money{},
		fees: map[ofSymbol]fee{}, struck: map[[3]string]struck{}, market: map[string]traded{}, venue: map[[2]string]fixed.Money{},
		posted: posted, balances: map[string]fixed.Money{}, positions: map[ofSymbol]standing{}, books: map[string][]string{}}
}

// day returns the period's day as SQL prints it.
func (p *period) day() string { return p.start.Format(time.DateOnly) }

// add counts one record.
func (p *period) add(e record.Entry) {
	for _, event := range e.Record.Events {
		if posted, ok := event.(domainledger.Posted); ok {
			for _, posting := range posted.Postings() {
				p.post(posting)
			}
		}
		if t, ok := event.(*trading.TradeExecuted); ok {
			p.trade(t)
		}
	}
	p.last = e.Record.Sequence
}

func (p *period) post(posting domainledger.Posting) {
	of, amount := posting.CustomerCode, posting.Amount
	if of == "" {
		p.venue[[2]string{string(posting.Account), string(posting.Type)}] += amount
		return
	}
	p.posted[of] = true
	day := p.pnl[of]
	switch posting.Type {
	case domainledger.Deposit, domainledger.Withdrawal:
		p.transfers[of] += amount
		return
	case domainledger.TradeFee, domainledger.LiquidationFee:
		day.fees += amount
	case domainledger.FundingPayment:
		day.funding += amount
		p.funding[ofSymbol{of, posting.Symbol}] += amount
	case domainledger.InsuranceFund:
		day.insurance += amount
	default:
		day.realized += amount
	}
	p.pnl[of] = day
}

func (p *period) trade(t *trading.TradeExecuted) {
	amount, _ := fixed.MoneyOf(t.Amount)
	m := p.market[t.Symbol]
	m.volume += amount
	m.turnover += t.Notional
	m.trades++
	if t.Action == order.Buy {
		m.bought += amount
	}
	if t.Type == trading.Liquidation {
		m.liquidated += amount
	}
	p.market[t.Symbol] = m
	for _, maker := range []bool{false, true} {
		leg := t.Taker
		if maker {
			leg = t.Maker
		}
		key := ofSymbol{leg.CustomerCode, t.Symbol}
		f := p.fees[key]
		f.turnover += t.Notional
		f.trades++
		switch {
		case maker:
			f.maker += leg.Fee
		case t.Type == trading.Liquidation:
			f.liquidation += leg.Fee
		default:
			f.taker += leg.Fee
		}
		p.fees[key] = f
		kind := ""
		switch {
		case t.Type == trading.Liquidation && !maker && leg.OrderCode.IsZero():
			kind = "takeover"
		case t.Type == trading.Liquidation && !maker:
			kind = "book"
		case t.Type == trading.AutoDeleveraging && maker:
			kind = "deleveraged"
		case t.Type == trading.AutoDeleveraging:
			kind = "passed_on"
		default:
			continue
		}
		of := [3]string{leg.CustomerCode, t.Symbol, kind}
		s := p.struck[of]
		s.customer, s.symbol, s.kind = leg.CustomerCode, t.Symbol, kind
		s.trades++
		s.fees += leg.Fee
		p.struck[of] = s
	}
}

// end reads the fold after the last record of the period.
func (p *period) end(s *trading.State) {
	holders := []string{trading.FundCode}
	for _, c := range s.CustomersOf("") {
		holders = append(holders, c.Code)
		if p.posted[c.Code] {
			p.balances[c.Code], _ = s.Balance(c.Code)
		}
	}
	for _, of := range holders {
		for _, h := range s.Positions(of) {
			contract := s.Contract(h.Symbol)
			steps, _ := contract.Steps(h.Amount)
			marks, _ := contract.Marks(h.MarkPrice)
			p.positions[ofSymbol{of, h.Symbol}] = standing{h.Amount.Trim(), h.MarkPrice.Trim(), h.Cost, contract.Worth(steps, marks).Sub(h.Cost)}
		}
	}
	for _, i := range s.Instruments() {
		p.books[i.Symbol] = depth(s, i.Symbol)
	}
}

// depth returns the book as lines of side, price and amount, asks first.
func depth(s *trading.State, symbol string) (levels []string) {
	bids, asks := s.Depth(symbol, 0)
	for _, l := range asks {
		levels = append(levels, fmt.Sprint("ask ", l.Price.Trim(), " ", l.Amount.Trim()))
	}
	for _, l := range bids {
		levels = append(levels, fmt.Sprint("bid ", l.Price.Trim(), " ", l.Amount.Trim()))
	}
	return levels
}

// periods folds the records and returns their days or hours.
func periods(entries []record.Entry, length time.Duration) (all []*period) {
	s := trading.NewState()
	var now *period
	posted := map[string]bool{}
	for _, e := range entries {
		if start := e.Record.Time.Std().Truncate(length); now == nil || !start.Equal(now.start) {
			if now != nil {
				now.end(s)
			}
			now = newPeriod(start, e.Record.Sequence, posted)
			all = append(all, now)
		}
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		now.add(e)
	}
	now.end(s)
	return all
}
