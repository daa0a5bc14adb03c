package trading

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// The events of orders get AppendJSON and ParseJSON from order.Order. order.rejected has its own.

// AppendJSON appends the event's JSON form, exactly as the generic encoder writes it.
func (e *OrderRejected) AppendJSON(b []byte) ([]byte, error) {
	b, err := e.Order.AppendJSON(b)
	if err != nil || e.Leverage == 0 {
		return b, err
	}
	b = append(b[:len(b)-len(`}`)], `,"leverage":`...)
	return append(strconv.AppendInt(b, int64(e.Leverage), 10), '}'), nil
}

// Canonical implements decide.Canonical.
func (e *OrderRejected) Canonical() bool { return e.Leverage >= 0 && e.Order.Canonical() }

// ParseJSON reads the output of AppendJSON into a zero event. See order.Order.ParseJSON.
func (e *OrderRejected) ParseJSON(b []byte) bool {
	r := fastjson.NewReader(b)
	e.ReadJSON(&r)
	return r.Done()
}

// ReadJSON is ParseJSON within a larger value. It implements decide.Reading.
func (e *OrderRejected) ReadJSON(r *fastjson.Reader) {
	e.ReadMembers(r)
	if r.Try(`,"leverage":`) {
		e.Leverage = int(r.Int())
	}
	r.Raw(`}`)
}

// AppendJSON appends the event's JSON form, exactly as the generic encoder writes it.
func (e *TradeExecuted) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	w.Raw(`{"code":`)
	fastjson.Text(&w, e.Code)
	w.Raw(`,"symbol":`)
	w.String(e.Symbol)
	w.Raw(`,"price":`)
	fastjson.Text(&w, e.Price)
	w.Raw(`,"amount":`)
	fastjson.Text(&w, e.Amount)
	w.Raw(`,"notional":`)
	fastjson.Text(&w, e.Notional)
	w.Raw(`,"action":`)
	w.String(string(e.Action))
	w.Raw(`,"type":`)
	w.String(string(e.Type))
	w.Raw(`,"taker":`)
	e.Taker.write(&w)
	w.Raw(`,"maker":`)
	e.Maker.write(&w)
	w.Raw(`,"positions":[`)
	for i := range e.Positions {
		if i > 0 {
			w.Raw(`,`)
		}
		e.Positions[i].write(&w)
	}
	w.Raw(`],"postings":[`)
	for i := range e.Entries {
		if i > 0 {
			w.Raw(`,`)
		}
		e.Entries[i].WriteJSON(&w)
	}
	w.Raw(`]}`)
	return w.Bytes, w.Err
}

// Canonical implements decide.Canonical.
func (e *TradeExecuted) Canonical() bool {
	for i := range e.Positions {
		if p := &e.Positions[i]; !p.Amount.Readable() || !p.EntryPrice.Canonical() {
			return false
		}
	}
	return e.Price.Readable() && e.Amount.Readable() && e.Positions != nil && e.Entries != nil
}

func (l *TradeLeg) write(w *fastjson.Writer) {
	w.Raw(`{`)
	if !l.OrderCode.IsZero() {
		w.Raw(`"order_code":`)
		fastjson.Text(w, l.OrderCode)
		w.Raw(`,`)
	}
	w.Raw(`"customer_code":`)
	w.String(l.CustomerCode)
	w.Raw(`,"broker":`)
	w.String(l.Broker)
	w.Raw(`,"fee":`)
	fastjson.Text(w, l.Fee)
	if l.ReferenceID != "" {
		w.Raw(`,"reference_id":`)
		w.String(l.ReferenceID)
	}
	w.Raw(`}`)
}

func (p *PositionHeld) write(w *fastjson.Writer) {
	w.Raw(`{"customer_code":`)
	w.String(p.CustomerCode)
	w.Raw(`,"symbol":`)
	w.String(p.Symbol)
	w.Raw(`,"amount":`)
	fastjson.Text(w, p.Amount)
	w.Raw(`,"cost":`)
	fastjson.Text(w, p.Cost)
	if !p.EntryPrice.IsZero() {
		w.Raw(`,"entry_price":`)
		fastjson.Text(w, p.EntryPrice)
	}
	w.Raw(`}`)
}

// ParseJSON reads the output of AppendJSON into a zero event. If it returns false, the event is invalid, and the caller
// must use the generic decoder.
func (e *TradeExecuted) ParseJSON(b []byte) bool {
	r := fastjson.NewReader(b)
	e.ReadJSON(&r)
	return r.Done()
}

// ReadJSON is ParseJSON within a larger value. It implements decide.Reading.
func (e *TradeExecuted) ReadJSON(r *fastjson.Reader) {
	r.Raw(`{"code":`)
	e.Code.ReadJSON(r)
	r.Raw(`,"symbol":`)
	e.Symbol = r.String()
	r.Raw(`,"price":`)
	e.Price.ReadJSON(r)
	r.Raw(`,"amount":`)
	e.Amount.ReadJSON(r)
	r.Raw(`,"notional":`)
	e.Notional.ReadJSON(r)
	r.Raw(`,"action":`)
	e.Action = order.ReadAction(r)
	r.Raw(`,"type":`)
	e.Type = fastjson.Word(r, Trade, Liquidation, AutoDeleveraging)
	r.Raw(`,"taker":`)
	e.Taker.read(r)
	r.Raw(`,"maker":`)
	e.Maker.read(r)
	r.Raw(`,"positions":`)
	e.Positions = readList(r, (*PositionHeld).read)
	r.Raw(`,"postings":`)
	e.Entries = readList(r, (*ledger.Posting).ReadJSON)
	r.Raw(`}`)
}

// roomAtOnce is the number of elements up to which a list is allocated in its size.
const roomAtOnce = 32

// readList reads an array of objects that have no objects in them.
func readList[T any](r *fastjson.Reader, read func(*T, *fastjson.Reader)) []T {
	r.Raw(`[`)
	list := make([]T, 0, min(r.Elements(), roomAtOnce))
	for more := !r.Try(`]`); more && !r.Failed(); more = !r.Try(`]`) {
		if len(list) > 0 {
			r.Raw(`,`)
		}
		list = append(list, *new(T))
		read(&list[len(list)-1], r)
	}
	return list
}

func (l *TradeLeg) read(r *fastjson.Reader) {
	r.Raw(`{`)
	if r.Try(`"order_code":`) {
		l.OrderCode.ReadJSON(r)
		r.Raw(`,`)
	}
	r.Raw(`"customer_code":`)
	l.CustomerCode = r.String()
	r.Raw(`,"broker":`)
	l.Broker = r.String()
	r.Raw(`,"fee":`)
	l.Fee.ReadJSON(r)
	if r.Try(`,"reference_id":`) {
		l.ReferenceID = r.String()
	}
	r.Raw(`}`)
}

func (p *PositionHeld) read(r *fastjson.Reader) {
	r.Raw(`{"customer_code":`)
	p.CustomerCode = r.String()
	r.Raw(`,"symbol":`)
	p.Symbol = r.String()
	r.Raw(`,"amount":`)
	p.Amount.ReadJSON(r)
	r.Raw(`,"cost":`)
	p.Cost.ReadJSON(r)
	if r.Try(`,"entry_price":`) {
		p.EntryPrice.ReadJSON(r)
	}
	r.Raw(`}`)
}

// ParseJSON reads what the generic encoder writes into a zero event. If it returns false, the event is invalid, and the caller must
// use the generic decoder.
func (e *IndexUpdated) ParseJSON(b []byte) bool {
	r := fastjson.NewReader(b)
	e.ReadJSON(&r)
	return r.Done()
}

// ReadJSON is ParseJSON within a larger value. It implements decide.Reading.
func (e *IndexUpdated) ReadJSON(r *fastjson.Reader) {
	r.Raw(`{"symbol":`)
	e.Symbol = r.String()
	r.Raw(`,"index_price":`)
	e.IndexPrice.ReadJSON(r)
	r.Raw(`,"mark_price":`)
	e.MarkPrice.ReadJSON(r)
	if r.Try(`,"premium":`) {
		e.Premium = new(fixed.Decimal)
		e.Premium.ReadJSON(r)
	}
	r.Raw(`}`)
}

// read reads the common members of the postings of funding and of settlement, which are the first ones.
func (e *DebtPosted) read(r *fastjson.Reader) {
	r.Raw(`{"code":`)
	e.Code.ReadJSON(r)
	r.Raw(`,"customer_code":`)
	e.CustomerCode = r.String()
	r.Raw(`,"broker":`)
	e.Broker = r.String()
	r.Raw(`,"symbol":`)
	e.Symbol = r.String()
	r.Raw(`,"timestamp":`)
	e.Time.ReadJSON(r)
	r.Raw(`,"mark_price":`)
	e.MarkPrice.ReadJSON(r)
	r.Raw(`,"postings":`)
	e.Entries = readList(r, (*ledger.Posting).ReadJSON)
}

// ParseJSON is that of IndexUpdated for the event.
func (e *FundingPosted) ParseJSON(b []byte) bool {
	r := fastjson.NewReader(b)
	e.ReadJSON(&r)
	return r.Done()
}

// ReadJSON is ParseJSON within a larger value. It implements decide.Reading.
func (e *FundingPosted) ReadJSON(r *fastjson.Reader) {
	e.read(r)
	r.Raw(`,"position_amount":`)
	e.PositionAmount.ReadJSON(r)
	r.Raw(`,"funding_rate":`)
	e.FundingRate.ReadJSON(r)
	r.Raw(`}`)
}

// ParseJSON is that of IndexUpdated for the event.
func (e *SettlementPosted) ParseJSON(b []byte) bool {
	r := fastjson.NewReader(b)
	e.ReadJSON(&r)
	return r.Done()
}

// ReadJSON is ParseJSON within a larger value. It implements decide.Reading.
func (e *SettlementPosted) ReadJSON(r *fastjson.Reader) {
	e.read(r)
	r.Raw(`,"positions":`)
	e.Positions = readList(r, (*PositionHeld).read)
	r.Raw(`}`)
}
