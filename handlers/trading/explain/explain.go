// Package explain explains a record of the trading journal to a customer that the record is about.
//
// The arithmetic is that of the rules themselves: they decide the record again on the state that it met, and write down each
// formula with its numbers (package arithmetic). An explanation has nothing of another party: no code, fee, balance, order, or
// reference. It includes public facts, such as prices.
package explain

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// Explanation is the explanation of a record for one customer.
type Explanation struct {
	CustomerCode string             `json:"customer_code"`
	Position     record.LogPosition `json:"position"`
	Timestamp    scalar.Time        `json:"timestamp"`
	// Subjects say what the record is for the customer, such as order, liquidation, or funding. There is at least one.
	Subjects []Subject      `json:"subjects"`
	Outcome  decide.Outcome `json:"outcome"`
	// Command is the command that the record answers. It is null if another party gave it.
	Command *Command `json:"command"`
	Rules   int      `json:"rules"` // in force
	Met     Met      `json:"met"`
	// DecidedAgain is false for a record of an older form, which does not show all its inputs. It has no arithmetic then.
	DecidedAgain bool               `json:"decided_again"`
	Arithmetic   []arithmetic.Line  `json:"arithmetic"`
	Orders       []wire.Order       `json:"orders"` // after the record
	Trades       []wire.Trade       `json:"trades"`
	Transactions []wire.Transaction `json:"transactions"` // the postings
	Positions    []Position         `json:"positions"`    // after the record
}

// Command is a command as its record has it.
type Command struct {
	ID   scalar.ID `json:"id"`
	Type string    `json:"type"`
	// Sub is the user that gave it, or null for the engine.
	Sub wire.Nullable[string] `json:"sub"`
	// Key is the Idempotency-Key, or null.
	Key wire.Nullable[string] `json:"idempotency_key"`
	// Request is the entry or amendment of an order, with its defaults; null for other commands.
	Request jsontext.Value `json:"request"`
}

// Met is the state before the record.
type Met struct {
	Position    record.LogPosition  `json:"position"`
	Account     wire.AccountSummary `json:"account"`
	Positions   []wire.Position     `json:"positions"`
	Instruments []Instrument        `json:"instruments"` // those that the record is about
}

// Instrument is an instrument before the record. A price or amount that did not exist is null.
type Instrument struct {
	Symbol     string         `json:"symbol"`
	Status     market.Status  `json:"status"`
	IndexPrice *fixed.Decimal `json:"index_price"`
	MarkPrice  *fixed.Decimal `json:"mark_price"`
	BestBid    *fixed.Decimal `json:"best_bid"`
	BestAsk    *fixed.Decimal `json:"best_ask"`
}

// Position is a position after the record.
type Position struct {
	Symbol     string         `json:"symbol"`
	Amount     fixed.Decimal  `json:"amount"`
	Cost       fixed.Money    `json:"cost"`
	EntryPrice *fixed.Decimal `json:"entry_price"` // null for a closed position
}

// Subject says how a record concerns a customer.
type Subject string

// The subjects.
const (
	Order            Subject = "order"             // the record placed an order of the customer
	Rejection        Subject = "rejection"         // the record rejected one
	OrderChange      Subject = "order_change"      // it changed or ended one
	Fill             Subject = "fill"              // an order of the customer was filled
	Trigger          Subject = "trigger"           // a stop of the customer fired
	Liquidation      Subject = "liquidation"       // a position of the customer was liquidated
	AutoDeleveraging Subject = "auto_deleveraging" // a position of the customer was reduced because another was liquidated, or the reverse
	Funding          Subject = "funding"
	Settlement       Subject = "settlement"
	Transfer         Subject = "transfer" // a deposit, a withdrawal, or a payment of the insurance fund
)

// journal decides records again.
var journal = redecide.Journal{Payloads: trading.Payloads(), Limit: trading.Rules().Limit()}

// New explains a record to a customer. confined says that the reader acts for this account alone, and does not see which other
// user of the broker gave a command. The error is explanations.ErrForeign or an *explanations.DifferentError.
func New(met past.Met, customer string, confined bool) (*Explanation, error) {
	state, r := met.State.(*trading.State), met.Entry.Record
	x := &Explanation{CustomerCode: customer, Position: record.LogPosition{Journal: "trading", Sequence: met.Entry.Position.Sequence}, Timestamp: r.Time,
		Outcome: r.Outcome, Rules: state.ActiveRules(), Arithmetic: []arithmetic.Line{}}
	own := view{customer: customer, at: met.Entry.Stamp(), x: x}
	own.see(r)
	if len(x.Subjects) == 0 {
		return nil, explanations.ErrForeign
	}
	again, err := explanations.Redecide(journal, met)
	if err != nil {
		return nil, err
	}
	if x.DecidedAgain = again.Decided; again.Decided {
		x.Arithmetic = state.Arithmetic(met.Entry.Stamp(), again.Command, again.Single).For(customer)
	}
	x.Command = commandOf(r, again.Command, customer, confined)
	x.Met = own.met(state, met.Before)
	return x, nil
}

// commandOf returns what a customer may see of a command: its own ones in full, and of the engine's and the operator's the type.
func commandOf(r *record.Record, c decide.Command, customer string, confined bool) *Command {
	out := &Command{ID: r.Command.ID, Type: r.Command.Type}
	if about, ok := c.Payload.(trading.AccountPayload); ok {
		if about.Account() != customer {
			return nil
		}
		if !confined || r.Command.Actor.Customer == customer {
			out.Sub, out.Key = wire.NullIfZero(r.Command.Actor.Sub), wire.NullIfZero(r.Command.Metadata.Key)
		}
		switch p := c.Payload.(type) {
		case *trading.PlaceOrder:
			out.Request = trading.PlaceOrderForm().AppendGiven(nil, p)
		case *trading.AmendOrder:
			out.Request = trading.AmendOrderForm().AppendGiven(nil, p)
		}
	}
	return out
}

// met returns the state before the record.
func (v *view) met(state *trading.State, before record.Position) Met {
	m := Met{Position: record.LogPosition{Journal: "trading", Sequence: before.Sequence}, Positions: []wire.Position{}, Instruments: []Instrument{}}
	if summary, ok := state.Summary(v.customer); ok {
		m.Account = wire.NewAccountSummary(&summary)
	}
	for _, p := range state.Positions(v.customer) {
		m.Positions = append(m.Positions, wire.NewPosition(&p))
	}
	for _, symbol := range v.symbols {
		status, _ := state.Status(symbol)
		index, _ := state.IndexPrice(symbol)
		bid, ask := state.BestBidAsk(symbol)
		m.Instruments = append(m.Instruments, Instrument{symbol, status, optional(index), optional(state.MarkPrice(symbol)), optional(bid.Price), optional(ask.Price)})
	}
	return m
}

// optional returns nil for the zero that stands for an absent price.
func optional(d fixed.Decimal) *fixed.Decimal {
	if d.IsZero() {
		return nil
	}
	return &d
}
