package live

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Some channels show the current state and not each step: ticker, tickers and candles, and the effect of instruments on positions and
// margin. The hub collects the changes made by records and sends them once per second.
//
// Tickers and candles equal those of the REST interface, because they are read from it, as of the last collected
// record or later.

// beatEvery is the default interval.
const beatEvery = time.Second

// conflation holds the collected changes. The hub's lock guards it.
type conflation struct {
	tickers   map[string]bool          // symbols with changes
	shown     map[string]members       // the last ticker of each symbol, without its timestamp
	minute    scalar.Time              // the minute whose 24-hour figures were compared with shown
	candles   map[string]*candleStream // topics with subscriptions, by the suffix of the topic
	accounts  accountChanges
	positions map[held]bool // positions with another liquidation price
	sent      sentAccounts
}

// sentAccounts is what publishAccounts sent for a record. While that is the last record, the interval does not send it again.
type sentAccounts struct {
	sequence  int64
	accounts  []string
	positions []held
}

// account reports whether the margin of an account was sent as of a record.
func (s *sentAccounts) account(customer string, sequence int64) bool {
	return s.sequence == sequence && slices.Contains(s.accounts, customer)
}

// position reports whether a position was sent as of a record.
func (s *sentAccounts) position(p held, sequence int64) bool {
	return s.sequence == sequence && slices.Contains(s.positions, p)
}

// accountChanges are the changes of instruments that affect accounts.
type accountChanges struct {
	marks map[string]bool // symbols with a new mark price or newly owed funding, which affect their holders
	terms map[string]bool // symbols with other margins or fees, which affect those with resting orders as well
}

func newAccountChanges() accountChanges {
	return accountChanges{make(map[string]bool), make(map[string]bool)}
}

func newConflation() conflation {
	return conflation{tickers: make(map[string]bool), shown: make(map[string]members), candles: make(map[string]*candleStream),
		accounts: newAccountChanges(), positions: make(map[held]bool)}
}

// candleStream is the common state of all subscriptions to one candles topic.
type candleStream struct {
	interval market.Interval
	symbol   string
	changed  bool
	last     scalar.Time // start of the last candle sent; zero: none
	text     string      // the last candle sent; "" to send it again
	closed   bool        // the last candle sent was closed
}

// wantTicker schedules a ticker for a new subscription.
func (p *conflation) wantTicker(symbol string) { p.tickers[symbol] = true }

// wantCandle schedules the candles of a topic for a new subscription.
func (p *conflation) wantCandle(of string) {
	k := p.candles[of]
	if k == nil {
		interval, symbol, _ := strings.Cut(of, ":")
		k = &candleStream{symbol: symbol}
		k.interval, _ = market.ParseInterval(interval)
		p.candles[of] = k
	}
	k.changed, k.text = true, ""
}

// note collects the changes by a record.
func (p *conflation) note(e record.Entry) {
	for _, event := range e.Record.Events {
		switch event := event.(type) {
		case trading.OrderEvent:
			p.tickers[event.After().Symbol] = true
		case *trading.TradeExecuted:
			p.tickers[event.Symbol] = true
			for _, k := range p.candles {
				k.changed = k.changed || k.symbol == event.Symbol && event.MovesLastPrice()
			}
		case *trading.IndexUpdated:
			p.tickers[event.Symbol], p.accounts.marks[event.Symbol] = true, true
		case *trading.FundingFixed: // every holder owes it from now on
			p.tickers[event.Symbol], p.accounts.marks[event.Symbol] = true, true
		case *trading.InstrumentListed:
			p.tickers[event.Symbol] = true
		case *trading.InstrumentChanged:
			p.tickers[event.Symbol], p.accounts.terms[event.Symbol] = true, true
		}
	}
}

// runConflation sends the collected changes at each interval until the context ends.
func (h *Hub) runConflation(ctx context.Context) {
	tick := time.NewTicker(h.limits.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.flushConflated(ctx)
		}
	}
}

// flushConflated sends the collected changes.
func (h *Hub) flushConflated(ctx context.Context) {
	h.mu.Lock()
	p, at := &h.streams.conflation, h.logPosition(h.streams.last.Sequence).String()
	tickersOf, accounts, liquidationPrices := p.tickers, p.accounts, p.positions
	p.tickers, p.accounts, p.positions = make(map[string]bool), newAccountChanges(), make(map[held]bool)
	minute := market.OneMinute.Start(h.clock.Now())
	moved := minute != p.minute // also without a record, the 24-hour figures move on
	p.minute = minute
	if h.streams.failed || h.streams.index.count[ticker]+h.streams.index.count[tickers] == 0 {
		tickersOf, moved = nil, false
	}
	if h.streams.failed || h.streams.index.count[positionsNow]+h.streams.index.count[marginNow] == 0 {
		accounts, liquidationPrices = accountChanges{}, nil
	}
	var due []*candleStream
	for of, k := range p.candles {
		switch {
		case len(h.streams.index.readers[key{candles, ofSymbol, of}]) == 0:
			delete(p.candles, of)
		case !h.streams.failed && (k.changed || k.last != 0 && !k.closed && h.clock.Now() >= k.last+k.interval.Span()):
			due = append(due, k)
			k.changed = false
		}
	}
	h.mu.Unlock()
	if len(tickersOf) > 0 || moved {
		h.sendTickers(ctx, tickersOf, moved, at)
	}
	for _, k := range due {
		h.sendCandles(ctx, k, at)
	}
	if len(accounts.marks)+len(accounts.terms) > 0 {
		h.sendAccounts(&accounts, liquidationPrices)
	}
	h.sendLiquidationPrices(liquidationPrices)
}

// ask reads a public list from the REST interface, as of a log position or later. It returns nil if the list is not
// available.
func (h *Hub) ask(ctx context.Context, at string, query url.Values, route string, params ...string) (list []jsontext.Value, position string) {
	call := rest.Call{Method: http.MethodGet, Route: route, Params: params, Query: query, Address: "127.0.0.1", Min: at}
	reply := h.rest.Do(ctx, &call)
	if reply.Status != http.StatusOK || json.Unmarshal(reply.Body, &list) != nil {
		if ctx.Err() == nil {
			h.logger.Debug("what a channel shows is not available", "path", call.Path(), "status", reply.Status)
		}
		return nil, ""
	}
	return list, reply.Position
}

// restUpdate is a message that contains a record of the REST interface.
type restUpdate struct {
	channel string
	record  jsontext.Value // a nonempty object
}

// AppendJSON appends the message as JSON.
func (u *restUpdate) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	w.Raw(`{"channel":`)
	w.String(u.channel)
	w.Raw(`,"type":"update",`)
	w.Bytes = append(w.Bytes, u.record[1:]...)
	return w.Bytes, w.Err
}

// sendTickers sends the tickers of symbols, and if moved is set, all others that differ from the last ones sent.
func (h *Hub) sendTickers(ctx context.Context, symbols map[string]bool, moved bool, at string) {
	list, position := h.ask(ctx, at, nil, "/v1/tickers")
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.streams.conflation
	if list == nil { // try again at the next interval
		for symbol := range symbols {
			p.wantTicker(symbol)
		}
		if moved {
			p.minute = 0
		}
		return
	}
	for _, record := range list {
		var shown members
		var symbol string
		if json.Unmarshal(record, &shown) != nil || json.Unmarshal(shown["symbol"], &symbol) != nil {
			continue
		}
		delete(shown, "timestamp") // the log's time, which moves on with records about others
		if !symbols[symbol] && (!moved || reflect.DeepEqual(shown, p.shown[symbol])) {
			continue
		}
		p.shown[symbol] = shown
		h.publish(&draft{channel: ticker, symbol: symbol, value: &restUpdate{ticker.topic(symbol), record}}, position)
		h.publish(&draft{channel: tickers, value: &restUpdate{tickers.name, record}}, position)
	}
}

// maxMissed is the maximum number of candles sent after the last one.
const maxMissed = 1000

// sendCandles sends the new and changed candles of a topic: the last one sent, until it is closed, and later ones.
func (h *Hub) sendCandles(ctx context.Context, k *candleStream, at string) {
	query := url.Values{"interval": {k.interval.String()}, "page_size": {"1"}}
	if k.last != 0 {
		query.Set("from", k.last.String())
		query.Set("page_size", strconv.Itoa(maxMissed))
	}
	list, position := h.ask(ctx, at, query, "/v1/candles/:symbol", k.symbol)
	h.mu.Lock()
	defer h.mu.Unlock()
	if list == nil {
		k.changed = true
		return
	}
	of := k.interval.String() + ":" + k.symbol
	for _, record := range list {
		var candle struct {
			Time   scalar.Time `json:"time"`
			Closed bool        `json:"closed"`
		}
		if json.Unmarshal(record, &candle) != nil || candle.Time == k.last && string(record) == k.text {
			continue
		}
		h.publish(&draft{channel: candles, symbol: of, value: &restUpdate{candles.topic(of), record}}, position)
		k.last, k.text, k.closed = candle.Time, string(bytes.Clone(record)), candle.Closed
	}
}

// sendAccounts sends the subscribed accounts that changes of instruments affect, in chunks. It removes the positions that it sends
// from due.
func (h *Hub) sendAccounts(changes *accountChanges, due map[held]bool) {
	brokers, customers := h.readAccounts()
	for _, broker := range brokers {
		for offset, more := 0, true; more; offset += chunk {
			h.look(func(s *trading.State) {
				end := min(offset+chunk, s.Registered(broker))
				for n := offset; n < end; n++ {
					h.sendAffected(s, s.CustomerAt(broker, n), changes, due)
				}
				more = end < s.Registered(broker)
			})
		}
	}
	for part := range slices.Chunk(customers, chunk) {
		h.look(func(s *trading.State) {
			for _, code := range part {
				if customer, known := s.Customer(code); known && !slices.Contains(brokers, customer.Broker) && !slices.Contains(brokers, "") {
					h.sendAffected(s, customer, changes, due)
				}
			}
		})
	}
}

// sendLiquidationPrices sends the positions in due that are still open, in chunks.
func (h *Hub) sendLiquidationPrices(due map[held]bool) {
	for part := range slices.Chunk(slices.Collect(maps.Keys(due)), chunk) {
		h.look(func(s *trading.State) {
			for _, p := range part {
				if customer, known := s.Customer(p.customer); known && s.Holds(p.customer, p.symbol) && h.anyReads(positionsNow, customer) {
					h.sendPosition(s, customer, p.symbol)
				}
			}
		})
	}
}

// readAccounts returns the subscribed accounts: the brokers, with "" alone meaning all brokers, and single customers.
func (h *Hub) readAccounts() (brokers, customers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.streams.index.readers {
		switch {
		case k.channel != marginNow && k.channel != positionsNow:
		case k.scope == ofCustomer && !slices.Contains(customers, k.name):
			customers = append(customers, k.name)
		case k.scope == ofBroker && !slices.Contains(brokers, k.name), k.scope == ofVenue && !slices.Contains(brokers, ""):
			brokers = append(brokers, k.name)
		}
	}
	if slices.Contains(brokers, "") {
		brokers = []string{""}
	}
	return brokers, customers
}

// look calls at with the state under the fold's lock and the hub's.
func (h *Hub) look(at func(s *trading.State)) {
	h.follower.View(func(state decide.State, _ record.Position) {
		h.mu.Lock()
		defer h.mu.Unlock()
		at(state.(*trading.State))
	})
}

// sendAffected sends an account that changes of instruments affect, if it has subscriptions. All its positions are sent, because the
// price of one instrument moves the liquidation prices of the others.
func (h *Hub) sendAffected(s *trading.State, customer trading.Customer, changes *accountChanges, due map[held]bool) {
	if !changes.affect(s, customer.Code) {
		return
	}
	if h.anyReads(positionsNow, customer) {
		for symbol := range s.Held(customer.Code) {
			h.sendPosition(s, customer, symbol)
			delete(due, held{customer.Code, symbol})
		}
	}
	if sequence := h.streams.last.Sequence; h.anyReads(marginNow, customer) && !h.streams.conflation.sent.account(customer.Code, sequence) {
		for _, d := range accountDrafts(marginNow, update, s, customer.Code, customer.Broker, sequence) {
			h.publishAccount(&d, h.logPosition(sequence).String())
		}
	}
}

// affect reports whether the changes affect an account.
func (c *accountChanges) affect(s *trading.State, customer string) bool {
	for symbol := range c.marks {
		if s.Holds(customer, symbol) {
			return true
		}
	}
	for symbol := range c.terms {
		if s.NeedsMargin(customer, symbol) {
			return true
		}
	}
	return false
}

// sendPosition sends a position, unless the last record has sent it.
func (h *Hub) sendPosition(s *trading.State, customer trading.Customer, symbol string) {
	sequence := h.streams.last.Sequence
	if h.streams.conflation.sent.position(held{customer.Code, symbol}, sequence) {
		return
	}
	if p, known := s.Position(customer.Code, symbol); known {
		d := positionDraft(update, &p, customer.Broker, sequence)
		h.publishAccount(&d, h.logPosition(sequence).String())
	}
}

// anyReads reports whether a customer's messages on a channel have subscriptions.
func (h *Hub) anyReads(c *channel, customer trading.Customer) bool {
	_, any := h.streams.index.of(&draft{channel: c, broker: customer.Broker, customer: customer.Code})
	return any
}
