package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// view is the maker's own idea of its account: the state that it began with, and what the private topics have told since.
// It keeps the past, so that it can be held against the venue's word as of any record.
type view struct {
	orders     map[string][]order // by code, all changes
	open       map[string]order   // by code, those that are live by the last that is known
	trades     []trade
	tradeCodes map[string]bool // the codes of those
	changes    []balanceChange
	start      struct {
		balance   decimal.Decimal
		positions map[string]decimal.Decimal // by symbol
	}
	shown map[string][]positionShown // by symbol, what the topic positions told over this connection
	at    map[string]string          // by topic, the position of its last message
}

// order is an order after one of its changes, as the topic orders has it.
type order struct {
	Code         string           `json:"code"`
	Symbol       string           `json:"symbol"`
	Action       string           `json:"action"`
	Status       string           `json:"status"`
	Amount       decimal.Decimal  `json:"amount"`
	FilledAmount decimal.Decimal  `json:"filled_amount"`
	FilledQuote  decimal.Decimal  `json:"filled_quote"`
	LimitPrice   *decimal.Decimal `json:"limit_price"`
	ReferenceID  string           `json:"reference_id"`
	Reason       *string          `json:"reason"`
	Sequence     int64            `json:"sequence"`
}

func (o *order) live() bool { return o.Status == "open" || o.Status == "partially_filled" }

func (o *order) same(p *order) bool {
	return o.Code == p.Code && o.Symbol == p.Symbol && o.Action == p.Action && o.Status == p.Status && o.Amount.Equal(p.Amount) &&
		o.FilledAmount.Equal(p.FilledAmount) && o.FilledQuote.Equal(p.FilledQuote) && equalOrNil(o.LimitPrice, p.LimitPrice) &&
		o.ReferenceID == p.ReferenceID && o.Sequence == p.Sequence
}

func equalOrNil(a, b *decimal.Decimal) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// trade is a trade of the account.
type trade struct {
	Code      string          `json:"code"`
	OrderCode string          `json:"order_code"`
	Symbol    string          `json:"symbol"`
	Action    string          `json:"action"`
	Amount    decimal.Decimal `json:"amount"`
	Sequence  int64           `json:"sequence"`
}

// signed is what the trade adds to the position.
func (t *trade) signed() decimal.Decimal {
	if t.Action == "sell" {
		return t.Amount.Neg()
	}
	return t.Amount
}

// balanceChange is a movement of the account's balance.
type balanceChange struct {
	ID       string           `json:"id"`
	Amount   decimal.Decimal  `json:"amount"`
	Status   string           `json:"status"`
	Balance  *decimal.Decimal `json:"balance"`
	Sequence int64            `json:"sequence"`

	sum decimal.Decimal // of all movements up to it, and of what there was at the beginning
}

// positionShown is a position as the topic positions told it.
type positionShown struct {
	Symbol   string          `json:"symbol"`
	Amount   decimal.Decimal `json:"amount"`
	Position string          `json:"position"`
}

// state is what the venue says of the account as of one record.
type state struct {
	sequence  int64
	position  string
	orders    []order
	positions map[string]decimal.Decimal
	balance   decimal.Decimal
}

// The private topics that can be resumed, and the one that begins with what there is.
var resumed = []string{"orders", "trades", "balance-changes"}

const positionsTopic = "positions"

func newView(s *state) *view {
	v := &view{orders: make(map[string][]order), open: make(map[string]order), tradeCodes: make(map[string]bool),
		shown: make(map[string][]positionShown), at: make(map[string]string)}
	v.start.balance, v.start.positions = s.balance, s.positions
	for _, o := range s.orders {
		v.orders[o.Code], v.open[o.Code] = []order{o}, o
	}
	for _, topic := range resumed {
		v.at[topic] = s.position
	}
	return v
}

// addOrder takes in a change of an order. Changes come in the order of the log, each once.
func (v *view) addOrder(o order) error {
	known := v.orders[o.Code]
	if n := len(known); n > 0 {
		last := known[n-1]
		switch {
		case o.Sequence <= last.Sequence:
			return fmt.Errorf("order %s changed in record %d after record %d", o.Code, o.Sequence, last.Sequence)
		case !last.live():
			return fmt.Errorf("order %s was %s in record %d and is %s in record %d", o.Code, last.Status, last.Sequence, o.Status, o.Sequence)
		case o.FilledAmount.LessThan(last.FilledAmount):
			return fmt.Errorf("order %s was filled by %s and is by %s", o.Code, last.FilledAmount, o.FilledAmount)
		}
	}
	v.orders[o.Code] = append(known, o)
	if delete(v.open, o.Code); o.live() {
		v.open[o.Code] = o
	}
	return nil
}

func (v *view) addTrade(t trade) error {
	if n := len(v.trades); n > 0 && v.trades[n-1].Sequence > t.Sequence {
		return fmt.Errorf("trade %s of record %d came after record %d", t.Code, t.Sequence, v.trades[n-1].Sequence)
	}
	if v.tradeCodes[t.Code] {
		return fmt.Errorf("trade %s came twice", t.Code)
	}
	v.trades, v.tradeCodes[t.Code] = append(v.trades, t), true
	return nil
}

func (v *view) addChange(c balanceChange) error {
	if c.Status != "completed" {
		return nil
	}
	c.sum = v.balanceAt(c.Sequence).Add(c.Amount)
	v.changes = append(v.changes, c)
	if c.Balance == nil {
		return fmt.Errorf("the movement %s is completed, and tells no balance", c.ID)
	}
	if !c.sum.Equal(*c.Balance) {
		return fmt.Errorf("after the movement %s of record %d the balance is %s, and the movements add up to %s", c.ID, c.Sequence, c.Balance, c.sum)
	}
	return nil
}

// orderAt returns an order as it was after a record.
func (v *view) orderAt(code string, sequence int64) (o order, known bool) {
	for _, change := range v.orders[code] {
		if change.Sequence > sequence {
			break
		}
		o, known = change, true
	}
	return o, known
}

// ended returns an error unless an order that was live when its connection ended was canceled for that, or on its way to be
// canceled or filled anyway.
func (v *view) ended(code string) error {
	changes := v.orders[code]
	last := changes[len(changes)-1]
	if last.Status == "filled" || last.Status == "canceled" && last.Reason != nil && (*last.Reason == "disconnect" || *last.Reason == "user_request") {
		return nil
	}
	return fmt.Errorf("after the end of its connection, an order is %+v", last)
}

// openAt returns the orders that were live after a record.
func (v *view) openAt(sequence int64) map[string]order {
	open := make(map[string]order)
	for code := range v.orders {
		if o, known := v.orderAt(code, sequence); known && o.live() {
			open[code] = o
		}
	}
	return open
}

// positionsAt returns what the trades up to a record add up to.
func (v *view) positionsAt(sequence int64) map[string]decimal.Decimal {
	sums := maps.Clone(v.start.positions)
	for _, t := range v.trades {
		if t.Sequence <= sequence {
			sums[t.Symbol] = sums[t.Symbol].Add(t.signed())
		}
	}
	maps.DeleteFunc(sums, func(_ string, amount decimal.Decimal) bool { return amount.IsZero() })
	return sums
}

// balanceAt returns what the movements up to a record add up to.
func (v *view) balanceAt(sequence int64) decimal.Decimal {
	for _, c := range slices.Backward(v.changes) {
		if c.Sequence <= sequence {
			return c.sum
		}
	}
	return v.start.balance
}

// sequenceOf returns the record of a position in the log like trading/0@12 or trading/0@12.3.
func sequenceOf(position string) (int64, error) {
	_, rest, ok := strings.Cut(position, "@")
	rest, _, _ = strings.Cut(rest, ".")
	n, err := strconv.ParseInt(rest, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a position in a log", position)
	}
	return n, nil
}
