package projectiontest

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// move posts an amount to a customer and its opposite to an account of the venue.
func (v *Venue) move(code scalar.ID, customer string, account ledger.Account, kind ledger.Type, amount fixed.Money, symbol string, orderCode scalar.ID) []ledger.Posting {
	if amount == 0 {
		return nil
	}
	v.Balances[customer] += amount
	v.Accounts[account] -= amount
	return []ledger.Posting{
		{Code: code, CustomerCode: customer, Type: kind, Currency: ledger.USDC, Amount: amount, Balance: v.Balances[customer], Symbol: symbol, OrderCode: orderCode},
		{Account: account, Type: kind, Currency: ledger.USDC, Amount: -amount, Balance: v.Accounts[account], Symbol: symbol, OrderCode: orderCode},
	}
}

func (v *Venue) deposit(customer string) record.Entry {
	code, amount := v.stamp().Derive(0), fixed.Money(1+v.random.Int64N(1e13))
	postings := v.move(code, customer, ledger.External, ledger.Deposit, amount, "", scalar.ID{})
	return v.Entry("deposit.make", actor(customer), decide.Accepted, &trading.DepositCompleted{Transaction: ledger.Transaction{Code: code,
		CustomerCode: customer, Broker: BrokerOf(customer), Type: ledger.Deposit, Currency: ledger.USDC, Amount: amount,
		Status: ledger.Completed, Balance: v.Balances[customer], ReferenceID: code.String(), Created: v.time, Updated: v.time}, Entries: postings})
}

func (v *Venue) withdraw(customer string) record.Entry {
	code := v.stamp().Derive(0)
	t := ledger.Transaction{Code: code, CustomerCode: customer, Broker: BrokerOf(customer), Type: ledger.Withdrawal,
		Currency: ledger.USDC, Amount: -fixed.Money(1 + v.random.Int64N(1e12)), Status: ledger.Pending, Balance: v.Balances[customer],
		ReferenceID: code.String(), Created: v.time, Updated: v.time}
	v.Withdrawals[code], v.pending = t, append(v.pending, code)
	return v.Entry("withdrawal.request", actor(customer), decide.Accepted, &trading.WithdrawalRequested{Transaction: t})
}

func (v *Venue) settleWithdrawal() record.Entry {
	i := v.random.IntN(len(v.pending))
	t := v.Withdrawals[v.pending[i]]
	v.pending = slices.Delete(v.pending, i, i+1)
	t.Updated, t.Status = v.time, ledger.Canceled
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	if v.random.IntN(2) == 0 {
		t.Balance = v.Balances[t.CustomerCode]
		v.Withdrawals[t.Code] = t
		return v.Entry("withdrawal.cancel", operator, decide.Accepted, &trading.WithdrawalCanceled{Transaction: t})
	}
	t.Status = ledger.Completed
	postings := v.move(t.Code, t.CustomerCode, ledger.External, ledger.Withdrawal, t.Amount, "", scalar.ID{})
	t.Balance = v.Balances[t.CustomerCode]
	v.Withdrawals[t.Code] = t
	return v.Entry("withdrawal.complete", operator, decide.Accepted, &trading.WithdrawalCompleted{Transaction: t, Entries: postings})
}

func (v *Venue) order(customer string) *order.Order {
	code := v.stamp().Derive(0)
	o := &order.Order{Code: code, CustomerCode: customer, Broker: BrokerOf(customer), Symbol: Symbols()[v.random.IntN(2)], Action: order.Buy,
		Type: order.Limit, Status: order.Open, Amount: fixed.Decimal{Coef: 2 + v.random.Int64N(5000), Scale: 3}, FilledAmount: fixed.Decimal{Scale: 3},
		LimitPrice: fixed.Decimal{Coef: 640000 + v.random.Int64N(20000), Scale: 1}, TimeInForce: order.GTC, ReferenceID: code.String(),
		Created: v.time, Updated: v.time}
	if v.random.IntN(2) == 0 {
		o.Action = order.Sell
	}
	switch v.random.IntN(6) {
	case 0:
		o.Type, o.TriggerPrice, o.TriggerPriceType = order.StopLossLimit, o.LimitPrice, order.TradePrice
	case 1:
		o.TimeInForce, o.ExpireTime = order.GTD, v.time+scalar.Hour
	case 2:
		o.ReferenceID = "ref-" + code.String()[:3]
	case 3:
		o.Type, o.LimitPrice, o.TriggerPriceType = order.TakeProfitStopLoss, fixed.Decimal{}, order.MarkPrice
		o.StopLossPrice, o.TakeProfitPrice, o.TimeInForce = fixed.Decimal{Coef: 600000, Scale: 1}, fixed.Decimal{Coef: 700000, Scale: 1}, order.IOC
	}
	return o
}

func (v *Venue) put(o *order.Order) { v.Orders[o.Code] = o }

func (v *Venue) reject(customer string) record.Entry {
	o := v.order(customer)
	o.Status, o.Reason = order.Rejected, order.InsufficientMargin
	v.put(o)
	return v.Entry("order.place", actor(customer), decide.Rejected, &trading.OrderRejected{Order: *o})
}

// placeOrder opens an order, or lets it trade with a live one.
func (v *Venue) placeOrder(customer string) record.Entry {
	o := v.order(customer)
	if len(v.live) == 0 || v.random.IntN(2) == 0 {
		v.put(o)
		v.live = append(v.live, o.Code)
		return v.Entry("order.place", actor(customer), decide.Accepted, &trading.OrderOpened{Order: *o})
	}
	i := v.random.IntN(len(v.live))
	m := *v.Orders[v.live[i]]
	o.Symbol, o.Action = m.Symbol, m.Action.Opposite()
	amount := fixed.Decimal{Coef: min(o.Amount.Coef, m.Amount.Coef-m.FilledAmount.Coef), Scale: 3}
	price := fixed.Decimal{Coef: 650000, Scale: 1}
	trade := v.trade(o, &m, price, amount)
	events := []decide.Event{fill(o, price, amount, v.time), trade, fill(&m, price, amount, v.time)}
	if m.Status == order.Filled {
		v.live = slices.Delete(v.live, i, i+1)
	}
	if o.Status.Live() {
		v.live = append(v.live, o.Code)
	}
	v.put(o)
	v.put(&m)
	return v.Entry("order.place", actor(customer), decide.Accepted, events...)
}

func fill(o *order.Order, price, amount fixed.Decimal, at scalar.Time) decide.Event {
	o.FilledAmount.Coef += amount.Coef
	o.FilledQuote += notional(price, amount)
	o.AverageFillPrice, o.Updated = price, at
	if o.FilledAmount == o.Amount {
		o.Status = order.Filled
		return &trading.OrderFilled{Order: *o}
	}
	o.Status = order.PartiallyFilled
	return &trading.OrderPartiallyFilled{Order: *o}
}

// notional of a price with 1 decimal and an amount with 3.
func notional(price, amount fixed.Decimal) fixed.Money {
	return fixed.Money(price.Coef * amount.Coef * 1e4)
}

func (v *Venue) trade(taker, maker *order.Order, price, amount fixed.Decimal) *trading.TradeExecuted {
	code, n := v.stamp().Derive(1), notional(price, amount)
	leg := func(o *order.Order, fee fixed.Money) trading.TradeLeg {
		return trading.TradeLeg{OrderCode: o.Code, CustomerCode: o.CustomerCode, Broker: o.Broker, Fee: fee, ReferenceID: o.ReferenceID}
	}
	e := &trading.TradeExecuted{Code: code, Symbol: taker.Symbol, Price: price, Amount: amount, Notional: n, Action: taker.Action, Type: trading.Trade,
		Taker: leg(taker, n/2000), Maker: leg(maker, n/5000)}
	e.Entries = append(e.Entries, v.move(code, taker.CustomerCode, ledger.Fees, ledger.TradeFee, -e.Taker.Fee, e.Symbol, taker.Code)...)
	e.Entries = append(e.Entries, v.move(code, maker.CustomerCode, ledger.Fees, ledger.TradeFee, -e.Maker.Fee, e.Symbol, maker.Code)...)
	profit := fixed.Money(v.random.Int64N(2e10) - 1e10)
	e.Entries = append(e.Entries, v.move(code, maker.CustomerCode, ledger.Clearing, ledger.Trade, profit, e.Symbol, maker.Code)...)
	for _, o := range []*order.Order{taker, maker} {
		key, sign := [2]string{o.CustomerCode, o.Symbol}, int64(1)
		if o.Action == order.Sell {
			sign = -1
		}
		v.Positions[key] = fixed.Decimal{Coef: v.Positions[key].Coef + sign*amount.Coef, Scale: 3}
		v.Costs[key] += fixed.Money(sign) * n
		e.Positions = append(e.Positions, trading.PositionHeld{CustomerCode: o.CustomerCode, Symbol: o.Symbol, Amount: v.Positions[key],
			Cost: v.Costs[key], EntryPrice: price})
	}
	return e
}

// waiting returns the place of the first live stop that has not fired, -1 if there is none.
func (v *Venue) waiting() int {
	return slices.IndexFunc(v.live, func(code scalar.ID) bool {
		o := v.Orders[code]
		return o.Type == order.StopLossLimit && o.Triggered.IsZero()
	})
}

// fire has a stop fire and rest.
func (v *Venue) fire(of *order.Order) record.Entry {
	o := *of
	o.Triggered, o.Updated = v.time, v.time
	v.put(&o)
	return v.Entry("engine.step", decide.Engine, decide.Accepted, &trading.Step{Work: trading.WorkTrigger},
		&trading.TriggerFired{OrderCode: o.Code, CustomerCode: o.CustomerCode, Broker: o.Broker, Symbol: o.Symbol, Leg: order.StopLossLeg,
			TriggerPrice: o.TriggerPrice, TriggerPriceType: o.TriggerPriceType}, &trading.OrderOpened{Order: o})
}

// change cancels, expires or amends a few live orders in one record.
func (v *Venue) change() record.Entry {
	var events []decide.Event
	for range 1 + v.random.IntN(2) {
		i := v.random.IntN(len(v.live))
		o := *v.Orders[v.live[i]]
		if slices.ContainsFunc(events, func(e decide.Event) bool { return e.(trading.OrderEvent).After().Code == o.Code }) {
			continue
		}
		o.Updated = v.time
		switch v.random.IntN(3) {
		case 0:
			o.Amount.Coef += v.random.Int64N(1000)
			events = append(events, &trading.OrderAmended{Order: o})
		case 1:
			o.Status = order.Expired
			events = append(events, &trading.OrderExpired{Order: o})
		default:
			o.Status, o.Reason = order.Canceled, order.UserRequest
			events = append(events, &trading.OrderCanceled{Order: o})
		}
		if !o.Status.Live() {
			v.live = slices.Delete(v.live, i, i+1)
		}
		v.put(&o)
	}
	return v.Entry("order.cancel", actor(events[0].(trading.OrderEvent).After().CustomerCode), decide.Accepted, events...)
}
