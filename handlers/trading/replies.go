package trading

import (
	"fmt"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// The functions here rebuild the answer to a command from the record that answers it: a first time and every time.

// placedOrder returns the order of an order.place command: by its reference_id if the client gave one, else the one
// whose code is derived from this very record, else the one whose long sweep the record finishes.
func placedOrder(e *journal.Entry, customer, reference string) *order.Order {
	var swept scalar.ID
	for _, event := range e.Record.Events {
		if f, ok := event.(*domain.SweepFinished); ok && f.Kind == domain.SweepOrder {
			swept = f.OrderCode
		}
	}
	for i, event := range e.Record.Events {
		changed, ok := event.(domain.OrderEvent)
		if !ok {
			continue
		}
		o := changed.After()
		switch {
		case o.CustomerCode != customer:
		case reference != "" && o.ReferenceID == reference, reference == "" && (o.Code == swept || o.Code == e.Stamp().Derive(i)):
			return o
		}
	}
	return nil
}

// changedOrder returns the order with the code as the record left it.
func changedOrder(r *journal.Record, code scalar.ID) *order.Order {
	for _, event := range r.Events {
		if changed, ok := event.(domain.OrderEvent); ok && changed.After().Code == code {
			return changed.After()
		}
	}
	return nil
}

// find returns the record's first event of a kind.
func find[E decide.Event](r *journal.Record) (event E, ok bool) {
	for _, e := range r.Events {
		if event, ok = e.(E); ok {
			return event, true
		}
	}
	return event, false
}

// Answer returns the event that a command is answered with: the first of its kind in the record that answers it.
func Answer[E decide.Event](result journal.Result, cmd decide.Command) (E, error) {
	e, ok := find[E](result.Entry.Record)
	if !ok {
		return e, Unanswered(result, cmd)
	}
	return e, nil
}

// First reports whether the answer is the first one that the client's request had: it is the same status again for a
// repeated Idempotency-Key, and another for a repeated reference_id. A record that ends a sweep is the engine's and
// holds no key: with a key it counts as that of the command whose sweep it ends.
func First(result journal.Result, cmd decide.Command) bool {
	if !result.Repeated {
		return true
	}
	if cmd.Kept.Key == "" {
		return false
	}
	r := result.Entry.Record
	_, ends := find[*domain.SweepFinished](r)
	return r.Command.Kept.Key == cmd.Kept.Key || ends && r.Command.Actor.System != ""
}

// rejected is the answer to an order that the engine rejected.
func rejected(o *order.Order) *web.Problem {
	return web.Rejected(strings.ToUpper(string(o.Reason)), reasonText(o.Reason)).WithOrder(wire.NewOrder(o))
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
		return "There is nothing to trade with, or no mark price yet."
	}
	return "The engine rejected the order: " + strings.ReplaceAll(string(r), "_", " ") + "."
}

// unanswered is a fault of the program.
type unanswered struct {
	command  string
	sequence int64
}

// Error names the command and the record.
func (e *unanswered) Error() string {
	return fmt.Sprintf("record %d holds no answer to %s", e.sequence, e.command)
}

// Unanswered is the error of a record that does not hold what its command's answer is made of.
func Unanswered(result journal.Result, cmd decide.Command) error {
	return &unanswered{cmd.Type, result.Entry.Record.Sequence}
}
