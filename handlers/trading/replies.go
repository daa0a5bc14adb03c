package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// These functions build the response to a command from the record that answers it, for the first request and for
// repeated ones.

// placedOrder returns the order of an order.place command: the one with the client's reference_id if given, else the
// one with a code derived from this record, else the one that the record's finished sweep belongs to.
func placedOrder(e *record.Entry, customer, reference string) *order.Order {
	var swept scalar.ID
	for _, event := range e.Record.Events {
		if f, ok := event.(*domain.WorkFinished); ok && f.Work == domain.WorkSweep {
			swept = f.OrderCode
		}
	}
	var triggered domain.Triggered
	for i, event := range e.Record.Events {
		o := triggered.Order(event, e.Record.Time)
		switch {
		case o == nil || o.CustomerCode != customer:
		case reference != "" && o.ReferenceID == reference, reference == "" && (o.Code == swept || o.Code == e.Stamp().Derive(i)):
			return o
		}
	}
	return nil
}

// changedOrder returns the identified order as the record left it.
func changedOrder(r *record.Record, named oneOrder) *order.Order {
	var triggered domain.Triggered
	for _, event := range r.Events {
		if o := triggered.Order(event, r.Time); o != nil && named.is(o) {
			return o
		}
	}
	return nil
}

// firstAnswer is Executed.First for orders. An order may be answered by the record that ends its sweep, which the
// engine submitted without a key. If the command has a key, that record counts as its first response.
func firstAnswer(x operation.Executed) bool {
	if x.First() {
		return true
	}
	_, ends := operation.Find[*domain.WorkFinished](x.Entry.Record)
	return x.Command.Metadata.Key != "" && ends && x.Entry.Record.Command.Actor.System != ""
}

// rejected returns the error for an order that the engine rejected.
func rejected(o *order.Order, in *record.Record) *problem.Problem {
	return problem.Rejected(strings.ToUpper(string(o.Reason)), reasonText(o.Reason)).WithOrder(wire.NewOrder(o, in.Sequence))
}

func reasonText(r order.Reason) string {
	switch r {
	case order.PostOnlyWouldCross:
		return "The post_only order would have taken liquidity."
	case order.InsufficientMargin:
		return "The available margin does not suffice."
	case order.ReduceOnlyInvalid:
		return "The order would not reduce a position, or too many reduce_only orders rest already."
	case order.InstrumentHalted:
		return "The instrument does not take such orders now."
	case order.PriceOutOfBand:
		return "The limit price is too far beyond the mark price."
	case order.TriggerWouldFireImmediately:
		return "The trigger price has been reached already."
	case order.CashAmountTooSmall:
		return "The cash_amount does not buy the smallest amount."
	case order.NoLiquidity:
		return "There is nothing to trade with."
	}
	return "The engine rejected the order: " + strings.ReplaceAll(string(r), "_", " ") + "."
}
