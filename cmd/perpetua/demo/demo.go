package demo

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Config configures the demo.
type Config struct {
	// REST is the base URL of the venue; its WebSocket is at /v1/ws there.
	REST string
	// Operator and Password are the credentials of a user with the scope operator.
	Operator, Password string
	// Newcomer is a customer that the demo registers and funds for a user who looks at the venue for the first time;
	// none if its Customer is empty.
	Newcomer Newcomer
	// Welcome is called once, after the newcomer got its funds and the makers quoted each instrument, so that the newcomer's
	// first order can fill. It may be nil.
	Welcome func()
	Seed    uint64
	// UserAgent is the user agent of the demo's requests.
	UserAgent string
	Logger    *slog.Logger
}

// Newcomer is a customer of another broker. The demo does not trade for it.
type Newcomer struct {
	Broker, Password string // user of the broker, with the scope trade
	Customer         string
}

// pace is the speed of the market.
type pace struct {
	turn   time.Duration // interval between turns of an instrument
	deeds  int           // maximum number of maker actions in a turn
	trades int64         // number of turns in a thousand in which a taker acts
}

// brisk is the pace of the first turns after a start, when a user is likely to watch. calm is the pace after that, at
// which a venue may run for months: the log grows by less than 100 MB a day, and the index price never reaches the age
// of ten seconds at which it is stale.
func brisk() pace { return pace{time.Second, 3, 600} }
func calm() pace  { return pace{6 * time.Second, 2, 350} }

const (
	briskTurns = 900 // of each instrument: a quarter of an hour
	// opening is the maximum number of maker actions in a turn while most of the book is missing.
	opening = 12
	// topUpTurns is the interval at which accounts are checked, in turns of an instrument.
	topUpTurns = 250
	// haltTurns is the number of turns without orders after an instrument refused one.
	haltTurns = 10
	// coolingTurns is the number of turns in which makers do not advance on a side after another trader's order blocked
	// them.
	coolingTurns = 5
)

// spent reports whether the makers have done enough in a turn. While much of the book is missing, they do more.
func (p pace) spent(done, missing int) bool {
	return done >= opening || done >= p.deeds && missing < opening/2
}

// demo is a run of the demo.
type demo struct {
	log      *slog.Logger
	seed     uint64
	rest     *client
	operator *user
	user     *user
	newcomer Newcomer
	welcomed func() // Config.Welcome
	broker   *user  // the newcomer's broker; nil if it cannot log in
	markets  []*market
	makers   []maker
	feed     *feed
	last     int64  // newest record that the demo has seen
	run      string // record at which this run began, which makes references unique
	made     int    // number of references created
	stuck    string // last request that failed because its order was gone
	failures map[string]bool
}

// Run trades until the context ends. If the venue fails, Run waits and continues; errors that waiting cannot cure are
// logged. At its end it cancels nothing: the next run continues with the resting quotes.
func Run(ctx context.Context, c Config) {
	d := &demo{log: c.Logger, seed: c.Seed, rest: newClient(c.REST, c.UserAgent, c.Logger), makers: makers(), failures: make(map[string]bool),
		operator: &user{name: c.Operator, password: c.Password}, user: &user{name: userName, password: password(c.Password)},
		newcomer: c.Newcomer, welcomed: c.Welcome}
	defer d.rest.close()
	if err := d.trade(ctx); err != nil && ctx.Err() == nil {
		d.log.Error("the demo market does not run", "error", err)
	}
}

func (d *demo) trade(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	if err := d.survey(ctx); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	d.feed = newFeed(d.rest, d.user, customers(), d.markets, d.last)
	var followers sync.WaitGroup
	followers.Go(func() { d.feed.run(following) })
	defer followers.Wait()
	defer stop()
	for turn := 0; ; turn++ {
		began := time.Now()
		m := d.markets[turn%len(d.markets)]
		p := brisk()
		if m.turns >= briskTurns {
			p = calm()
		}
		if m.moving() {
			p.deeds = opening // otherwise the quotes lag behind the price
		}
		if err := d.turn(ctx, m, p); err != nil {
			return err
		}
		if turn+1 == len(d.markets) && d.broker != nil && d.welcomed != nil {
			d.welcomed()
		}
		if err := wait(ctx, p.turn/time.Duration(len(d.markets))-time.Since(began)); err != nil {
			return err
		}
	}
}

// survey reads the instruments and their index prices.
func (d *demo) survey(ctx context.Context) error {
	known := make(map[string]listed)
	for _, path := range []string{"/v1/tickers", "/v1/instruments"} {
		r, err := d.rest.do(ctx, nil, http.MethodGet, path, nil, d.last)
		if err == nil {
			err = r.err(path)
		}
		if err != nil {
			return err
		}
		var all []listed
		if err := json.Unmarshal(r.body, &all); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, i := range all {
			if before, ok := known[i.Symbol]; ok {
				i.IndexPrice = before.IndexPrice
			}
			known[i.Symbol] = i
		}
	}
	prices := make([]int64, len(presets()))
	for n, p := range presets() {
		if i := known[p.symbol]; i.IndexPrice != nil && i.PriceTick.Sign() > 0 {
			prices[n], _ = i.IndexPrice.Over(i.PriceTick)
		}
	}
	run := again(prices)
	for n, p := range presets() {
		i := known[p.symbol]
		if i.PriceTick.Sign() <= 0 {
			continue // withdrawn by the operator
		}
		m, err := newMarket(p, n, i, prices[n], d.seed, run)
		if err != nil {
			return err
		}
		d.markets = append(d.markets, m)
	}
	if len(d.markets) == 0 {
		return errors.New("the venue lists none of its instruments")
	}
	return nil
}

// again identifies a run on a venue by the index prices that it starts with. It returns 0 for a new venue without
// prices.
func again(prices []int64) uint64 {
	h, any := fnv.New64a(), false
	for _, p := range prices {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(p)))
		any = any || p != 0
	}
	if !any {
		return 0
	}
	return h.Sum64() >> 8
}

// turn performs one turn of an instrument.
func (d *demo) turn(ctx context.Context, m *market, p pace) error {
	m.move()
	r, err := d.rest.do(ctx, d.operator, http.MethodPost, "/admin/v1/index-prices/"+m.symbol, map[string]string{"price": m.price(m.index)}, 0)
	if err != nil {
		return err
	}
	d.last = max(d.last, r.sequence)
	if err := r.err("index price"); err != nil {
		d.complain(err, r)
		m.rests = m.turns + haltTurns
	}
	if m.turns%topUpTurns == 0 {
		if err := d.topUp(ctx); err != nil {
			return err
		}
	}
	if m.turns < m.rests {
		return nil
	}
	if err := d.quote(ctx, m, p); err != nil || m.turns < m.rests {
		return err
	}
	if err := d.play(ctx, m); err != nil || !m.flow.chance(p.trades) {
		return err
	}
	return d.take(ctx, m)
}

// quote performs the makers' most urgent actions.
func (d *demo) quote(ctx context.Context, m *market, p pace) error {
	for done := 0; m.turns >= m.rests; done++ {
		var do deed
		var missing int
		if err := d.feed.look(ctx, func(view *mirror) { do, missing = next(d.makers, m, view) }); err != nil {
			return err
		}
		if do.verb == nothing || p.spent(done, missing) {
			return nil
		}
		if err := d.act(ctx, m, do); err != nil {
			return err
		}
	}
	return nil
}

// act performs one action of a maker.
func (d *demo) act(ctx context.Context, m *market, do deed) error {
	path := "/v1/customers/" + do.maker.customer + "/orders"
	side := do.slot.side
	switch do.verb {
	case cancel:
		return d.order(ctx, m, do.order.side, http.MethodDelete, path+"/"+do.order.code, nil)
	case amend:
		return d.order(ctx, m, do.order.side, http.MethodPatch, path+"/"+do.order.code, map[string]string{"limit_price": m.price(do.price)})
	}
	return d.order(ctx, m, side, http.MethodPost, path, map[string]any{"symbol": m.symbol, "action": sideName(side), "type": "limit",
		"amount": m.amount(m.depth(do.slot.level)), "limit_price": m.price(do.price), "post_only": true, "reference_id": do.slot.reference(d.unique(""))})
}

// take performs one action of a taker.
func (d *demo) take(ctx context.Context, m *market) error {
	var w wish
	if err := d.feed.look(ctx, func(view *mirror) { w = wants(m, view) }); err != nil {
		return err
	}
	path := "/v1/customers/" + w.customer + "/orders"
	if w.cancel != nil {
		return d.order(ctx, m, w.cancel.side, http.MethodDelete, path+"/"+w.cancel.code, nil)
	}
	w.order["reference_id"] = d.unique("t")
	return d.order(ctx, m, bid, http.MethodPost, path, w.order)
}

// order sends a request about an order, and waits until the socket has reported the result.
func (d *demo) order(ctx context.Context, m *market, side int, method, path string, body any) error {
	r, err := d.rest.do(ctx, d.user, method, path, body, 0)
	if err != nil {
		return err
	}
	d.last = max(d.last, r.sequence)
	if r.status < 300 {
		if err := d.feed.await(ctx, r.sequence); err != nil && ctx.Err() != nil {
			return err
		}
		return nil
	}
	switch code := r.code(); {
	case code == "POST_ONLY_WOULD_CROSS":
		m.cooling[side] = m.turns + coolingTurns
	case code == "INSUFFICIENT_MARGIN":
		return d.topUp(ctx)
	case code == "NO_LIQUIDITY" || code == "CASH_AMOUNT_TOO_SMALL":
	case r.status == http.StatusConflict || r.status == http.StatusNotFound:
		// Another trader has just filled the order, so the socket will report it soon. If the same request fails again,
		// the socket is restarted.
		m.rests = m.turns + 1
		if d.stuck == path {
			d.feed.again()
		}
		d.stuck = path
	default:
		d.complain(r.err(method+" "+path), r)
		m.rests = m.turns + haltTurns
	}
	return nil
}

// complain logs an unexpected response, once for each kind.
func (d *demo) complain(err error, r reply) {
	kind := strconv.Itoa(r.status) + r.code()
	if d.failures[kind] {
		return
	}
	d.failures[kind] = true
	d.log.Warn("the venue refused something to the demo market; this is said once", "error", err)
}

// unique returns a reference that no other run on this venue returns.
func (d *demo) unique(kind string) string {
	if d.run == "" {
		d.run = strconv.FormatInt(d.last, 36)
	}
	d.made++
	if kind != "" {
		kind += "-"
	}
	return kind + d.run + "-" + strconv.Itoa(d.made)
}
