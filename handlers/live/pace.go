package live

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
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
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Some channels show what something is now, and not each step of how it became so: ticker, tickers and candles, and of
// positions and margin what a mark price did to them. What records change is noted, and sent once a second.
//
// Tickers and candles are those of the REST interface, figure by figure, since they are taken from there, as of the last
// record that was noted or later.

// beatEvery is how often that is.
const beatEvery = time.Second

// pace is what is still to be sent. The hub's lock guards it.
type pace struct {
	tickers map[string]bool          // symbols of which something changed
	candles map[string]*candleStream // of the topics that somebody reads, by what follows the channel's name
	marks   map[string]bool          // symbols whose mark price moved, or whose holders owe funding
}

func newPace() pace {
	return pace{make(map[string]bool), make(map[string]*candleStream), make(map[string]bool)}
}

// candleStream is where the readers of one topic of candles stand.
type candleStream struct {
	interval market.Interval
	symbol   string
	changed  bool
	last     scalar.Time // when the candle began that was sent last; zero for none
	text     string      // of that candle, "" where it should be sent again
	closed   bool        // it was
}

// wantTicker has a ticker sent although nothing may have changed: somebody is new.
func (p *pace) wantTicker(symbol string) { p.tickers[symbol] = true }

// wantCandle does the same for a topic of candles.
func (p *pace) wantCandle(of string) {
	k := p.candles[of]
	if k == nil {
		interval, symbol, _ := strings.Cut(of, ":")
		k = &candleStream{symbol: symbol}
		k.interval, _ = market.ParseInterval(interval)
		p.candles[of] = k
	}
	k.changed, k.text = true, ""
}

// note takes note of what a record changed.
func (p *pace) note(e record.Entry) {
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
			p.tickers[event.Symbol], p.marks[event.Symbol] = true, true
		case *trading.FundingFixed: // which every holder owes from then on
			p.tickers[event.Symbol], p.marks[event.Symbol] = true, true
		case *trading.InstrumentListed:
			p.tickers[event.Symbol] = true
		case *trading.InstrumentChanged:
			p.tickers[event.Symbol] = true
		}
	}
}

// keepPace sends what has gathered, once a second, until the context ends.
func (h *Hub) keepPace(ctx context.Context) {
	tick := time.NewTicker(h.limits.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.beat(ctx)
		}
	}
}

// beat sends what has gathered.
func (h *Hub) beat(ctx context.Context) {
	h.mu.Lock()
	p, at := &h.pace, h.logPosition(h.last.Sequence).String()
	tickersOf, marks := p.tickers, p.marks
	p.tickers, p.marks = make(map[string]bool), make(map[string]bool)
	if h.failed || h.index.count[ticker]+h.index.count[tickers] == 0 {
		tickersOf = nil
	}
	if h.failed || h.index.count[positionsNow]+h.index.count[marginNow] == 0 {
		marks = nil
	}
	var due []*candleStream
	for of, k := range p.candles {
		switch {
		case len(h.index.readers[key{candles, ofSymbol, of}]) == 0:
			delete(p.candles, of)
		case !h.failed && (k.changed || k.last != 0 && !k.closed && scalar.TimeOf(time.Now()) >= k.last+k.interval.Span()):
			due = append(due, k)
			k.changed = false
		}
	}
	h.mu.Unlock()
	if len(tickersOf) > 0 {
		h.sendTickers(ctx, tickersOf, at)
	}
	for _, k := range due {
		h.sendCandles(ctx, k, at)
	}
	if len(marks) > 0 {
		h.sendMarks(marks)
	}
}

// ask asks the REST interface for a public list, as of a position of the log or later. It returns nil where there is no
// answer now.
func (h *Hub) ask(ctx context.Context, at string, query url.Values, route string, params ...string) (list []jsontext.Value, position string) {
	call := web.Call{Method: http.MethodGet, Route: route, Params: params, Query: query, Address: "127.0.0.1", Min: at}
	reply := h.rest.Do(ctx, &call)
	if reply.Status != http.StatusOK || json.Unmarshal(reply.Body, &list) != nil {
		if ctx.Err() == nil {
			h.logger.Debug("what a channel shows is not available", "path", call.Path(), "status", reply.Status)
		}
		return nil, ""
	}
	return list, reply.Position
}

// restUpdate is a record of the REST interface as a message.
type restUpdate struct {
	channel string
	record  jsontext.Value // an object that is not empty
}

// AppendJSON writes the message.
func (u *restUpdate) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	w.Raw(`{"channel":`)
	w.String(u.channel)
	w.Raw(`,"type":"update",`)
	w.Bytes = append(w.Bytes, u.record[1:]...)
	return w.Bytes, w.Err
}

func (h *Hub) sendTickers(ctx context.Context, symbols map[string]bool, at string) {
	list, position := h.ask(ctx, at, nil, "/v1/tickers")
	h.mu.Lock()
	defer h.mu.Unlock()
	if list == nil { // the next time
		for symbol := range symbols {
			h.pace.wantTicker(symbol)
		}
		return
	}
	for _, record := range list {
		var of struct {
			Symbol string `json:"symbol"`
		}
		if json.Unmarshal(record, &of) != nil || !symbols[of.Symbol] {
			continue
		}
		h.publish(&draft{channel: ticker, symbol: of.Symbol, value: &restUpdate{ticker.topic(of.Symbol), record}}, position)
		h.publish(&draft{channel: tickers, value: &restUpdate{tickers.name, record}}, position)
	}
}

// maxMissed is how many candles may have passed since the last one that was sent.
const maxMissed = 1000

// sendCandles sends the candles of a topic that are new or have changed: the last one that was sent, once it is closed, and
// those after it.
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

// sendMarks sends the accounts that hold something of which the mark price moved: those that somebody reads, a part of them
// at a time.
func (h *Hub) sendMarks(symbols map[string]bool) {
	brokers, customers := h.readAccounts()
	for _, broker := range brokers {
		for place, more := 0, true; more; place += chunk {
			h.look(func(s *trading.State) {
				end := min(place+chunk, s.Registered(broker))
				for n := place; n < end; n++ {
					h.sendMarked(s, s.CustomerAt(broker, n), symbols)
				}
				more = end < s.Registered(broker)
			})
		}
	}
	for part := range slices.Chunk(customers, chunk) {
		h.look(func(s *trading.State) {
			for _, code := range part {
				if customer, known := s.Customer(code); known && !slices.Contains(brokers, customer.Broker) && !slices.Contains(brokers, "") {
					h.sendMarked(s, customer, symbols)
				}
			}
		})
	}
}

// readAccounts returns whose accounts somebody reads: the brokers, "" alone for all of them, and single customers.
func (h *Hub) readAccounts() (brokers, customers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.index.readers {
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

// look shows the state under the fold's lock and the hub's.
func (h *Hub) look(at func(s *trading.State)) {
	h.follower.View(func(state decide.State, _ record.Position) {
		h.mu.Lock()
		defer h.mu.Unlock()
		at(state.(*trading.State))
	})
}

// sendMarked sends an account and its positions whose mark price moved, if there are any and somebody reads them.
func (h *Hub) sendMarked(s *trading.State, customer trading.Customer, symbols map[string]bool) {
	at, holds := h.logPosition(h.last.Sequence).String(), false
	for symbol := range symbols {
		if !s.Holds(customer.Code, symbol) {
			continue
		}
		holds = true
		if p, known := s.Position(customer.Code, symbol); known && h.anyReads(positionsNow, customer) {
			d := positionDraft(update, &p, customer.Broker, h.last.Sequence)
			h.publishAccount(&d, at)
		}
	}
	if holds && h.anyReads(marginNow, customer) {
		for _, d := range accountDrafts(marginNow, update, s, customer.Code, customer.Broker, h.last.Sequence) {
			h.publishAccount(&d, at)
		}
	}
}

// anyReads reports whether somebody reads a customer's messages on a channel.
func (h *Hub) anyReads(c *channel, customer trading.Customer) bool {
	_, any := h.index.of(&draft{channel: c, broker: customer.Broker, customer: customer.Code})
	return any
}
