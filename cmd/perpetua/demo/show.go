package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// The show is for users who look at the venue for the first time. Two customers of the newcomer's broker trade with
// leverage on one instrument, and then its price moves against them, so that within the first minutes a stop fires,
// funding is paid and a position is liquidated. The show has several acts: in one the customers are long and the price
// falls, in the next they are short and it rises. The show needs no mirror, because each act begins by closing the
// customers' orders and positions.

// showSymbol is the instrument of the show. In the demo it has funding every minute; see the instruments that `run
// --demo` lists.
const showSymbol = "SOLUSDC_PERP"

// The turns of an act, counted from its beginning.
const (
	tidyTurn  = 20 // by then the book has been built
	enterTurn = 24 // the first trader enters, and each following one enterGap turns later
	enterGap  = 4
	moveTurn  = 60 // from here on the price moves against them
	moveTurns = 50
	actTurns  = 120
	acts      = 6 // about a quarter of an hour, in which a user is likely to watch
)

// movePace is the price change in each of those turns, in parts per million: 7 % in total.
const movePace = 1400

// trader is a customer in the show. Distances are in parts per million of the index price; 0 means no such order.
type trader struct {
	customer, name string
	funds          int   // in USDC, at the beginning of each act
	leverage       int   // requested with the entering order
	lots           int64 // size of the position, at the market's base price
	stop, profit   int64 // distances of a stop loss and a take profit
}

// traders returns the customers of the show: one is stopped out at a small loss, the other has no stop.
func traders() []trader {
	return []trader{
		{"CAREFUL", "The demo's: 5x leverage, and a stop", 10_000, 5, 10, 20_000, 30_000},
		{"GAMBLER", "The demo's: 13x leverage, no stop", 1_000, 13, 20, 0, 0},
	}
}

// act returns the turn within the current act and the side that its traders take. ok is false outside of the acts.
func (m *market) act() (turn, side int, ok bool) {
	n := int(m.turns) - 1 // turns begin with 1
	return n % actTurns, n / actTurns % 2, m.symbol == showSymbol && n/actTurns < acts
}

// moving reports whether the show moves the price in this turn.
func (m *market) moving() bool {
	turn, _, ok := m.act()
	return ok && turn >= moveTurn && turn < moveTurn+moveTurns
}

// push moves the price against the traders: down if they bought.
func (m *market) push() {
	if _, side, _ := m.act(); m.moving() {
		m.index = m.walk.push(-sign(side) * movePace)
	}
}

// play performs the traders' actions of this turn.
func (d *demo) play(ctx context.Context, m *market) error {
	turn, side, ok := m.act()
	if !ok || d.broker == nil {
		return nil
	}
	for i, t := range traders() {
		var err error
		switch turn {
		case tidyTurn:
			err = d.tidy(ctx, m, t)
		case enterTurn + i*enterGap:
			err = d.enter(ctx, m, t, side)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// introduce registers the traders.
func (d *demo) introduce(ctx context.Context) error {
	for _, t := range traders() {
		r, err := d.rest.do(ctx, d.broker, http.MethodPost, "/v1/customers", map[string]any{"customer_code": t.customer, "name": t.name}, 0)
		if err != nil {
			return err
		}
		if err := r.err("customer " + t.customer); err != nil && r.status != http.StatusConflict {
			return err
		}
		d.last = max(d.last, r.sequence)
	}
	return nil
}

// tidy closes a trader's orders and position of the last act, and deposits enough for the next one.
func (d *demo) tidy(ctx context.Context, m *market, t trader) error {
	path := "/v1/customers/" + t.customer
	if err := d.ask(ctx, http.MethodDelete, path+"/orders?symbol="+m.symbol, nil, nil); err != nil {
		return err
	}
	var positions []struct {
		Symbol string        `json:"symbol"`
		Amount fixed.Decimal `json:"amount"`
	}
	if err := d.ask(ctx, http.MethodGet, path+"/positions", nil, &positions); err != nil {
		return err
	}
	for _, p := range positions {
		amount, short := strings.CutPrefix(p.Amount.String(), "-")
		action := sideName(ask)
		if short {
			action = sideName(bid)
		}
		err := d.ask(ctx, http.MethodPost, path+"/orders", map[string]any{"symbol": p.Symbol, "action": action, "type": "market",
			"amount": amount, "reduce_only": true, "reference_id": d.unique("show")}, nil)
		if err != nil {
			return err
		}
	}
	var summary []struct {
		Available fixed.Money `json:"available_margin"`
	}
	if err := d.ask(ctx, http.MethodGet, path+"/account-summary", nil, &summary); err != nil || len(summary) == 0 {
		return err
	}
	if lack := t.funds - int(summary[0].Available/fixed.Money(fixed.Pow10(8))); lack > 0 {
		return d.depositOf(ctx, t.customer, lack, d.unique("show"))
	}
	return nil
}

// enter opens a trader's position and places the orders that close it.
func (d *demo) enter(ctx context.Context, m *market, t trader, side int) error {
	path := "/v1/customers/" + t.customer + "/orders"
	amount := m.amount(max(1, m.lot*t.lots*m.began/m.index)) // the same value at any price
	err := d.ask(ctx, http.MethodPost, path, map[string]any{"symbol": m.symbol, "action": sideName(side), "type": "market",
		"amount": amount, "leverage": t.leverage, "reference_id": d.unique("show")}, nil)
	if err != nil || t.stop == 0 {
		return err
	}
	stop, profit := m.price(away(m.index, t.stop, side)), m.price(away(m.index, t.profit, 1-side))
	for _, order := range []map[string]any{
		{"type": "stop_loss", "trigger_price": stop},
		{"type": "take_profit_limit", "trigger_price": profit, "limit_price": profit},
	} {
		order["symbol"], order["action"], order["amount"] = m.symbol, sideName(1-side), amount
		order["reduce_only"], order["reference_id"] = true, d.unique("show")
		if err := d.ask(ctx, http.MethodPost, path, order, nil); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request as the traders' broker, and decodes the response into out unless that is nil. A refusal is logged
// but not returned: the show continues.
func (d *demo) ask(ctx context.Context, method, path string, body, out any) error {
	after := int64(0)
	if method == http.MethodGet {
		after = d.last
	}
	r, err := d.rest.do(ctx, d.broker, method, path, body, after)
	if err != nil {
		return err
	}
	d.last = max(d.last, r.sequence)
	if err := r.err(method + " " + path); err != nil {
		if r.code() != "NO_LIQUIDITY" { // the book may be thin for a moment
			d.complain(err, r)
		}
		return nil
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(r.body, out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
