package explain

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// view collects what a record's events say about one customer.
type view struct {
	customer string
	at       decide.Stamp
	x        *Explanation
	symbols  []string
	trades   int  // in the record so far
	placing  bool // whether the command places an order
}

func (v *view) see(r *record.Record) {
	v.x.Orders, v.x.Trades, v.x.Transactions, v.x.Positions = []wire.Order{}, []wire.Trade{}, []wire.Transaction{}, []Position{}
	v.placing = r.Command.Type == trading.CommandPlaceOrder
	for i, e := range r.Events {
		v.event(i, e)
	}
}

func (v *view) event(index int, e decide.Event) {
	if o, ok := e.(trading.OrderEvent); ok {
		v.order(index, o.After())
		return
	}
	switch e := e.(type) {
	case *trading.TradeExecuted:
		v.trade(e)
	case *trading.TriggerFired:
		if e.CustomerCode == v.customer {
			v.about(Trigger, e.Symbol)
		}
	case *trading.FundingPosted:
		if e.CustomerCode == v.customer {
			v.about(Funding, e.Symbol)
		}
	case *trading.SettlementPosted:
		if e.CustomerCode == v.customer {
			v.about(Settlement, e.Symbol)
		}
	case *trading.PositionOpened:
		if e.CustomerCode == v.customer {
			v.about(Transfer, e.Symbol)
		}
	case *trading.LeverageChanged:
		if e.CustomerCode == v.customer {
			v.about(OrderChange, e.Symbol)
		}
	}
	ledger.Rows(v.at, e, func(row *ledger.Row) {
		if row.CustomerCode == v.customer {
			v.x.Transactions = append(v.x.Transactions, wire.NewTransaction(row))
			if row.Symbol == "" {
				v.about(Transfer, "")
			}
		}
	})
	if changed, ok := e.(trading.PositionEvent); ok {
		for _, p := range changed.PositionsAfter() {
			if p.CustomerCode == v.customer {
				v.position(p)
			}
		}
	}
}

// about adds a subject, and an instrument, unless it is known.
func (v *view) about(s Subject, symbol string) {
	if !slices.Contains(v.x.Subjects, s) {
		v.x.Subjects = append(v.x.Subjects, s)
	}
	if symbol != "" && !slices.Contains(v.symbols, symbol) {
		v.symbols = append(v.symbols, symbol)
	}
}

// order adds an order after the record. The command placed it if the code is derived from the event's index.
func (v *view) order(index int, o *order.Order) {
	if o.CustomerCode != v.customer {
		return
	}
	v.x.Orders = append(v.x.Orders, wire.NewOrder(o, v.at.Sequence))
	switch {
	case o.Status == order.Rejected:
		v.about(Rejection, o.Symbol)
	case v.placing && o.Code == v.at.Derive(index):
		v.about(Order, o.Symbol)
	default:
		v.about(OrderChange, o.Symbol)
	}
}

func (v *view) trade(e *trading.TradeExecuted) {
	taker, maker := e.Sides(v.at, v.trades)
	v.trades++
	for _, side := range [...]*trading.CustomerTrade{&taker, &maker} {
		if side.CustomerCode != v.customer {
			continue
		}
		v.x.Trades = append(v.x.Trades, wire.NewTrade(side))
		subject := Fill
		switch side.Type {
		case trading.Liquidation:
			subject = Liquidation
		case trading.AutoDeleveraging:
			subject = AutoDeleveraging
		}
		v.about(subject, e.Symbol)
	}
}

// position keeps the last state of a position.
func (v *view) position(p trading.PositionHeld) {
	shown := Position{p.Symbol, p.Amount, p.Cost, optional(p.EntryPrice)}
	for i := range v.x.Positions {
		if v.x.Positions[i].Symbol == p.Symbol {
			v.x.Positions[i] = shown
			return
		}
	}
	v.x.Positions = append(v.x.Positions, shown)
}
