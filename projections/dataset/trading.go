package dataset

import (
	"iter"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/funding"
	"github.com/perpetua-exchange/perpetua/projections/trades"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// orderRow is an order after one event of a record. Ordinal is the index of the event.
type orderRow struct {
	Origin
	Event            string                 `parquet:"event,dict,id(4)"`
	Code             scalar.ID              `parquet:"code,uuid,id(5)"`
	CustomerCode     string                 `parquet:"customer_code,dict,id(6)"`
	Broker           string                 `parquet:"broker,dict,id(7)"`
	Symbol           string                 `parquet:"symbol,dict,id(8)"`
	Action           order.Action           `parquet:"action,dict,id(9)"`
	Type             order.Type             `parquet:"type,dict,id(10)"`
	Status           order.Status           `parquet:"status,dict,id(11)"`
	Amount           number                 `parquet:"amount,decimal(18:38),id(12)"`
	FilledAmount     number                 `parquet:"filled_amount,decimal(18:38),id(13)"`
	CashAmount       number                 `parquet:"cash_amount,optional,decimal(18:38),id(14)"`
	FilledQuote      number                 `parquet:"filled_quote,decimal(18:38),id(15)"`
	LimitPrice       number                 `parquet:"limit_price,optional,decimal(18:38),id(16)"`
	TriggerPrice     number                 `parquet:"trigger_price,optional,decimal(18:38),id(17)"`
	StopLossPrice    number                 `parquet:"stop_loss_price,optional,decimal(18:38),id(18)"`
	TakeProfitPrice  number                 `parquet:"take_profit_price,optional,decimal(18:38),id(19)"`
	TriggerPriceType order.TriggerPriceType `parquet:"trigger_price_type,optional,dict,id(20)"`
	Triggered        scalar.Time            `parquet:"triggered,optional,timestamp(microsecond),id(21)"`
	AverageFillPrice number                 `parquet:"average_fill_price,optional,decimal(18:38),id(22)"`
	TimeInForce      order.TimeInForce      `parquet:"time_in_force,dict,id(23)"`
	ExpireTime       scalar.Time            `parquet:"expire_time,optional,timestamp(microsecond),id(24)"`
	PostOnly         bool                   `parquet:"post_only,id(25)"`
	ReduceOnly       bool                   `parquet:"reduce_only,id(26)"`
	Reason           order.Reason           `parquet:"reason,optional,dict,id(27)"`
	Created          scalar.Time            `parquet:"created,timestamp(microsecond),id(28)"`
}

func orderRows(m *maker, e *record.Entry, add func(orderRow)) {
	var triggered trading.Triggered
	for i, event := range e.Record.Events {
		o := triggered.Order(event, e.Record.Time)
		if o == nil {
			continue
		}
		add(orderRow{Origin: originOf(e, int64(i)), Event: event.EventType(), Code: o.Code, CustomerCode: o.CustomerCode, Broker: o.Broker,
			Symbol: o.Symbol, Action: o.Action, Type: o.Type, Status: o.Status, Amount: m.decimal(o.Amount), FilledAmount: m.decimal(o.FilledAmount),
			CashAmount: m.money(o.CashAmount), FilledQuote: m.money(o.FilledQuote), LimitPrice: m.decimal(o.LimitPrice),
			TriggerPrice: m.decimal(o.TriggerPrice), StopLossPrice: m.decimal(o.StopLossPrice), TakeProfitPrice: m.decimal(o.TakeProfitPrice),
			TriggerPriceType: o.TriggerPriceType, Triggered: o.Triggered, AverageFillPrice: m.decimal(o.AverageFillPrice), TimeInForce: o.TimeInForce,
			ExpireTime: o.ExpireTime, PostOnly: o.PostOnly, ReduceOnly: o.ReduceOnly, Reason: o.Reason, Created: o.Created})
	}
}

// tradeRow is one side of a trade. Ordinal is that of the table trades in Postgres: twice the index of the trade, plus 1 for the maker.
type tradeRow struct {
	Origin
	Code         scalar.ID         `parquet:"code,uuid,id(4)"`
	OrderCode    scalar.ID         `parquet:"order_code,optional,uuid,id(5)"`
	CustomerCode string            `parquet:"customer_code,dict,id(6)"`
	Broker       string            `parquet:"broker,dict,id(7)"`
	Symbol       string            `parquet:"symbol,dict,id(8)"`
	Action       order.Action      `parquet:"action,dict,id(9)"`
	Price        number            `parquet:"price,decimal(18:38),id(10)"`
	Amount       number            `parquet:"amount,decimal(18:38),id(11)"`
	Notional     number            `parquet:"notional,decimal(18:38),id(12)"`
	Fee          number            `parquet:"fee,decimal(18:38),id(13)"`
	FeeCurrency  string            `parquet:"fee_currency,dict,id(14)"`
	Role         trading.Role      `parquet:"role,dict,id(15)"`
	Type         trading.TradeType `parquet:"type,dict,id(16)"`
}

func tradeRows(m *maker, e *record.Entry, add func(tradeRow)) {
	for r := range trades.Rows(e) {
		add(tradeOf(m, e, r))
	}
}

func tradeOf(m *maker, e *record.Entry, r *projections.Row[trades.Trade]) tradeRow {
	t := &r.Value
	return tradeRow{originOf(e, r.Key.Ordinal), t.Code, t.OrderCode, t.CustomerCode, t.Broker, t.Symbol, t.Action, m.decimal(t.Price),
		m.decimal(t.Amount), m.money(t.Notional), m.money(t.Fee), t.FeeCurrency, t.Role, t.Type}
}

// liquidationRow is a trade by which a position was liquidated or deleveraged, from the side that it happened to. Sequence and
// Ordinal are those of that side in the table trades.
type liquidationRow struct {
	tradeRow
	RealizedPnL number `parquet:"realized_pnl,decimal(18:38),id(17)"`
}

func liquidationRows(m *maker, e *record.Entry, add func(liquidationRow)) {
	var realized map[side]fixed.Money
	for r := range trades.Rows(e) {
		if r.Value.Type == trading.Trade {
			continue
		}
		if realized == nil {
			realized = realizedIn(e)
		}
		add(liquidationRow{tradeOf(m, e, r), m.money(realized[side{r.Value.Code, r.Value.CustomerCode}])})
	}
}

// side is a customer's side of a trade.
type side struct {
	code     scalar.ID
	customer string
}

// realizedIn returns the profits and losses that a record's liquidations and deleveragings realized.
func realizedIn(e *record.Entry) map[side]fixed.Money {
	realized := make(map[side]fixed.Money)
	for p := range postings(e) {
		if p.Type == domainledger.Liquidation || p.Type == domainledger.AutoDeleveraging {
			realized[side{p.Code, p.CustomerCode}] += p.Amount
		}
	}
	return realized
}

// posting is a posting of a record, with the event that made it.
type posting struct {
	*domainledger.Posting
	event   domainledger.Posted
	ordinal int64 // index among the postings of the record
}

// broker returns the broker of the customer, or "" for an account of the venue.
func (p posting) broker() string {
	if p.CustomerCode == "" {
		return ""
	}
	return p.event.BrokerOf(p.CustomerCode)
}

// postings returns the postings of a record to the accounts of customers and of the venue.
func postings(e *record.Entry) iter.Seq[posting] {
	return func(yield func(posting) bool) {
		ordinal := int64(0)
		for _, event := range e.Record.Events {
			posted, ok := event.(domainledger.Posted)
			if !ok {
				continue
			}
			all := posted.Postings()
			for i := range all {
				if !yield(posting{&all[i], posted, ordinal}) {
					return
				}
				ordinal++
			}
		}
	}
}

// postingRow is an entry in an account of a customer or of the venue. Ordinal counts the postings of the record to both. Postgres counts
// those to customers and those to the venue separately.
type postingRow struct {
	Origin
	Code         scalar.ID            `parquet:"code,optional,uuid,id(4)"`
	Account      domainledger.Account `parquet:"account,optional,dict,id(5)"`
	CustomerCode string               `parquet:"customer_code,optional,dict,id(6)"`
	Broker       string               `parquet:"broker,optional,dict,id(7)"`
	Type         domainledger.Type    `parquet:"type,dict,id(8)"`
	Currency     string               `parquet:"currency,dict,id(9)"`
	Amount       number               `parquet:"amount,decimal(18:38),id(10)"`
	Balance      number               `parquet:"balance,decimal(18:38),id(11)"`
	Symbol       string               `parquet:"symbol,optional,dict,id(12)"`
	OrderCode    scalar.ID            `parquet:"order_code,optional,uuid,id(13)"`
}

func postingRows(m *maker, e *record.Entry, add func(postingRow)) {
	for p := range postings(e) {
		add(postingRow{originOf(e, p.ordinal), p.Code, p.Account, p.CustomerCode, p.broker(), p.Type, p.Currency, m.money(p.Amount), m.money(p.Balance),
			p.Symbol, p.OrderCode})
	}
}

// fundingRow is a payment of funding to or from a customer. Sequence and Ordinal are also the key of the posting in the table postings.
type fundingRow struct {
	Origin
	Code           scalar.ID `parquet:"code,uuid,id(4)"`
	CustomerCode   string    `parquet:"customer_code,dict,id(5)"`
	Broker         string    `parquet:"broker,dict,id(6)"`
	Symbol         string    `parquet:"symbol,dict,id(7)"`
	Currency       string    `parquet:"currency,dict,id(8)"`
	Amount         number    `parquet:"amount,decimal(18:38),id(9)"`
	FundingRate    number    `parquet:"funding_rate,decimal(18:38),id(10)"`
	PositionAmount number    `parquet:"position_amount,decimal(18:38),id(11)"`
	MarkPrice      number    `parquet:"mark_price,decimal(18:38),id(12)"`
}

func fundingRows(m *maker, e *record.Entry, add func(fundingRow)) {
	for p := range postings(e) {
		funded, ok := p.event.(domainledger.Funded)
		if !ok || p.CustomerCode == "" {
			continue
		}
		terms := funded.FundingTerms()
		add(fundingRow{originOf(e, p.ordinal), p.Code, p.CustomerCode, p.broker(), p.Symbol, p.Currency, m.money(p.Amount),
			m.decimal(terms.FundingRate), m.decimal(terms.PositionAmount), m.decimal(terms.MarkPrice)})
	}
}

// fundingRateRow is a funding time of an instrument, also a missed one. Ordinal is that of the table funding_rates in Postgres.
type fundingRateRow struct {
	Origin
	Symbol          string      `parquet:"symbol,dict,id(4)"`
	Instant         scalar.Time `parquet:"instant,timestamp(microsecond),id(5)"`
	FundingRate     number      `parquet:"funding_rate,decimal(18:38),id(6)"`
	IndexPrice      number      `parquet:"index_price,decimal(18:38),id(7)"`
	MarkPrice       number      `parquet:"mark_price,decimal(18:38),id(8)"`
	IntervalSeconds int64       `parquet:"interval_seconds,id(9)"`
	Missed          bool        `parquet:"missed,id(10)"`
}

func fundingRateRows(m *maker, e *record.Entry, add func(fundingRateRow)) {
	for r := range funding.Rows(e) {
		f := &r.Value
		add(fundingRateRow{originOf(e, r.Key.Ordinal), f.Symbol, f.Time, m.decimal(f.FundingRate), m.decimal(f.IndexPrice), m.decimal(f.MarkPrice),
			int64(f.IntervalSeconds), f.Missed})
	}
}

// positionRow is a position after a change. Ordinal counts the changes of positions in the record.
type positionRow struct {
	Origin
	CustomerCode string `parquet:"customer_code,dict,id(4)"`
	Broker       string `parquet:"broker,dict,id(5)"`
	Symbol       string `parquet:"symbol,dict,id(6)"`
	Amount       number `parquet:"amount,decimal(18:38),id(7)"`
	Cost         number `parquet:"cost,decimal(18:38),id(8)"`
	EntryPrice   number `parquet:"entry_price,optional,decimal(18:38),id(9)"`
}

func positionRows(m *maker, e *record.Entry, add func(positionRow)) {
	ordinal := int64(0)
	for _, event := range e.Record.Events {
		changed, ok := event.(trading.PositionEvent)
		if !ok {
			continue
		}
		for _, p := range changed.PositionsAfter() {
			add(positionRow{originOf(e, ordinal), p.CustomerCode, changed.BrokerOf(p.CustomerCode), p.Symbol, m.decimal(p.Amount), m.money(p.Cost),
				m.decimal(p.EntryPrice)})
			ordinal++
		}
	}
}

// priceRow is a new index price, with the mark price that follows from it. Ordinal is the index of the event.
type priceRow struct {
	Origin
	Symbol     string  `parquet:"symbol,dict,id(4)"`
	IndexPrice number  `parquet:"index_price,decimal(18:38),id(5)"`
	MarkPrice  number  `parquet:"mark_price,decimal(18:38),id(6)"`
	Premium    *number `parquet:"premium,decimal(18:38),id(7)"`
}

func priceRows(m *maker, e *record.Entry, add func(priceRow)) {
	for i, event := range e.Record.Events {
		p, ok := event.(*trading.IndexUpdated)
		if !ok {
			continue
		}
		row := priceRow{Origin: originOf(e, int64(i)), Symbol: p.Symbol, IndexPrice: m.decimal(p.IndexPrice), MarkPrice: m.decimal(p.MarkPrice)}
		if p.Premium != nil {
			premium := m.decimal(*p.Premium)
			row.Premium = &premium
		}
		add(row)
	}
}
