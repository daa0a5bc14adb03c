package trading

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// written is an event that is encoded and decoded by hand.
type written interface {
	decide.Event
	decide.Parser
	decide.Canonical
	AppendJSON([]byte) ([]byte, error)
}

var (
	_ written = (*OrderOpened)(nil)
	_ written = (*OrderPartiallyFilled)(nil)
	_ written = (*OrderFilled)(nil)
	_ written = (*OrderCanceled)(nil)
	_ written = (*OrderExpired)(nil)
	_ written = (*OrderRejected)(nil)
	_ written = (*OrderAmended)(nil)
	_ written = (*TradeExecuted)(nil)
)

// checkWritten holds what is written by hand against the generic encoder and decoder. The data is what the latter wrote.
func checkWritten(t fataler, e decide.Event, data []byte) {
	t.Helper()
	w, ok := e.(written)
	if !ok {
		checkRead(t, e, data)
		return
	}
	got, err := w.AppendJSON([]byte("x"))
	if err != nil || !bytes.Equal(got[1:], data) || got[0] != 'x' {
		t.Fatalf("%s is written as\n%s\nand not as\n%s (%v)", e.EventType(), got, data, err)
	}
	generic, fast := fresh(e), fresh(e)
	if err := json.Unmarshal(data, generic, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", e.EventType(), err)
	}
	if !fast.ParseJSON(data) || !reflect.DeepEqual(fast, generic) {
		t.Fatalf("%s reads as\n%+v\nand not as\n%+v", data, fast, generic)
	}
	if !w.Canonical() || !reflect.DeepEqual(fast, e) {
		t.Fatalf("%s reads as\n%+v\nand was\n%+v", data, fast, e)
	}
}

func fresh(e decide.Event) written {
	return reflect.New(reflect.TypeOf(e).Elem()).Interface().(written)
}

// checkRead holds an event that is only decoded by hand against the generic decoder.
func checkRead(t fataler, e decide.Event, data []byte) {
	t.Helper()
	if _, ok := e.(decide.Reading); ok && !readsAlike(t, e, data) {
		t.Fatalf("%s is not read by hand: %s", e.EventType(), data)
	}
}

// readsAlike reports whether data is decoded by hand as an event of the type of e. Then the generic decoder must read the same.
func readsAlike(t fataler, e decide.Event, data []byte) bool {
	t.Helper()
	generic, fast := reflect.New(reflect.TypeOf(e).Elem()).Interface(), reflect.New(reflect.TypeOf(e).Elem()).Interface().(decide.Reading)
	err := json.Unmarshal(data, generic, json.RejectUnknownMembers(true))
	read := fast.ParseJSON(data)
	if read && (err != nil || !reflect.DeepEqual(any(fast), generic)) {
		t.Fatalf("%s reads as\n%+v\nand not as\n%+v (%v)", data, fast, generic, err)
	}
	return read
}

var _, _, _ decide.Reading = (*IndexUpdated)(nil), (*FundingPosted)(nil), (*SettlementPosted)(nil)

// TestReadJSON draws events that are only decoded by hand: what is read must be what the generic decoder reads.
func TestReadJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{t}
		premium := d.decimal()
		for _, e := range []decide.Event{&IndexUpdated{d.text(), d.decimal(), d.decimal(), &premium}, &FundingPosted{d.debt(), d.decimal(), d.decimal()},
			&SettlementPosted{d.debt(), d.positions()}} {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			readsAlike(t, e, data)
		}
	})
}

// TestReadJSONChanged changes each byte of such events, leaves it out, and puts others before it.
func TestReadJSONChanged(t *testing.T) {
	number := func(n int64) fixed.Decimal { return fixed.Decimal{Coef: n, Scale: 2} }
	premium, id := number(-4), scalar.ID{1, 0xab}
	posting := ledger.Posting{Code: id, CustomerCode: "c", Type: ledger.FundingPayment, Currency: ledger.USDC, Amount: 5, Balance: -6, Symbol: "S", OrderCode: id}
	debt := DebtPosted{id, "c", "b", "S", start, number(7), []ledger.Posting{posting, {Account: ledger.Funding, Type: ledger.FundingPayment, Currency: ledger.USDC}}}
	for _, e := range []decide.Event{&IndexUpdated{"S", number(1), number(2), nil}, &IndexUpdated{"S", number(1), number(2), &premium},
		&FundingPosted{debt, number(8), number(-9)}, &SettlementPosted{debt, []PositionHeld{{"c", "S", number(10), 11, number(12)}, {}}}, &SettlementPosted{}} {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		checkRead(t, e, data)
		for at := range data {
			for _, c := range []byte("\"0 91-.}{]A\\\x00\x7f\xc3,:a") {
				readsAlike(t, e, slices.Concat(data[:at], []byte{c}, data[at+1:]))
				readsAlike(t, e, slices.Concat(data[:at], []byte{c}, data[at:]))
			}
			readsAlike(t, e, slices.Concat(data[:at], data[at+1:]))
			readsAlike(t, e, data[:at])
		}
	}
}

// TestWrittenJSON draws events with everything that may be in a field, and more: words that no rule knows, absent and
// present nullable fields, strings that must be escaped.
func TestWrittenJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{t}
		var e written = &OrderOpened{d.order()}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0, 1:
			e = d.trade()
		case 2:
			e = &OrderRejected{d.order(), rapid.OneOf(rapid.Just(0), rapid.IntRange(-20, 20), rapid.Int()).Draw(t, "leverage")}
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.AppendJSON(nil)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("written as\n%s\nand not as\n%s (%v)", got, data, err)
		}
		generic, fast := fresh(e), fresh(e)
		if err := json.Unmarshal(data, generic, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
		if fast.ParseJSON(data) && !reflect.DeepEqual(fast, generic) {
			t.Fatalf("%s reads as\n%+v\nand not as\n%+v", data, fast, generic)
		}
		if back, err := eventTable.Registry().Decode(e.EventType(), decide.VersionOf(e), data); err != nil || !reflect.DeepEqual(back, generic) {
			t.Fatalf("the registry reads %s as\n%+v (%v)", data, back, err)
		} else if e.Canonical() && !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v\nis not canonical: it reads as\n%+v", e, back)
		}
	})
}

// TestCanonical checks that what is read in another way, or not at all, says so.
func TestCanonical(t *testing.T) {
	zero := fixed.Decimal{Scale: 2}
	good := order.Order{Amount: zero, Created: start, Updated: start}
	trade := TradeExecuted{Positions: []PositionHeld{}, Entries: []ledger.Posting{}}
	if !good.Canonical() || !trade.Canonical() {
		t.Error("what is canonical is not")
	}
	for name, change := range map[string]func(*order.Order){
		"limit": func(o *order.Order) { o.LimitPrice = zero }, "trigger": func(o *order.Order) { o.TriggerPrice = zero },
		"stop": func(o *order.Order) { o.StopLossPrice = zero }, "profit": func(o *order.Order) { o.TakeProfitPrice = zero },
		"average": func(o *order.Order) { o.AverageFillPrice = zero }, "scale": func(o *order.Order) { o.LimitPrice = fixed.Decimal{Coef: 1, Scale: 19} },
		"amount": func(o *order.Order) { o.Amount.Scale = 19 }, "filled": func(o *order.Order) { o.FilledAmount.Scale = 19 },
		"expire": func(o *order.Order) { o.ExpireTime = 300_000_000_000 * scalar.Second }, "created": func(o *order.Order) { o.Created = -1 },
		"updated": func(o *order.Order) { o.Updated = 300_000_000_000 * scalar.Second },
	} {
		o := good
		change(&o)
		if o.Canonical() {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for name, change := range map[string]func(*TradeExecuted){
		"price": func(e *TradeExecuted) { e.Price.Scale = 19 }, "amount": func(e *TradeExecuted) { e.Amount.Scale = 19 },
		"positions": func(e *TradeExecuted) { e.Positions = nil }, "entries": func(e *TradeExecuted) { e.Entries = nil },
		"entry":  func(e *TradeExecuted) { e.Positions = []PositionHeld{{EntryPrice: zero}} },
		"entry?": func(e *TradeExecuted) { e.Positions = []PositionHeld{{Amount: fixed.Decimal{Scale: 19}}} },
	} {
		e := trade
		change(&e)
		if e.Canonical() {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestInvalidTextIsNotWritten checks that what has no JSON form is an error by hand, too.
func TestInvalidTextIsNotWritten(t *testing.T) {
	for _, e := range []written{&OrderOpened{order.Order{ReferenceID: "\xff"}}, &TradeExecuted{Symbol: "\xff"}} {
		if _, err := e.AppendJSON(nil); err == nil {
			t.Errorf("%s with invalid text is written", e.EventType())
		}
	}
}

type drawn struct{ *rapid.T }

func (d drawn) text() string {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9._:-]{0,12}`), rapid.Just(""), rapid.String(),
		rapid.SampledFrom([]string{"\"", "\\", "\x00", "\x7f", "\u2028", "<&>", "é", "buy", "sell", "limit", "market", "GTC", "GTD", "open", "filled"})).Draw(d.T, "text")
}

func (d drawn) decimal() fixed.Decimal {
	return fixed.Decimal{Coef: d.int64(), Scale: uint8(rapid.IntRange(0, 18).Draw(d.T, "scale"))}
}

func (d drawn) int64() int64 {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-1000, 1000), rapid.Int64()).Draw(d.T, "number")
}

func (d drawn) time() scalar.Time {
	return scalar.Time(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-60_000_000_000_000_000, 250_000_000_000_000_000)).Draw(d.T, "time"))
}

func (d drawn) id() (id scalar.ID) {
	if rapid.Bool().Draw(d.T, "some id") {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(d.T, "id"))
	}
	return id
}

func (d drawn) order() order.Order {
	return order.Order{Code: d.id(), CustomerCode: d.text(), Broker: d.text(), Symbol: d.text(), Action: order.Action(d.text()),
		Type: order.Type(d.text()), Status: order.Status(d.text()), Amount: d.decimal(), FilledAmount: d.decimal(), CashAmount: fixed.Money(d.int64()),
		FilledQuote: fixed.Money(d.int64()), LimitPrice: d.decimal(), TriggerPrice: d.decimal(), StopLossPrice: d.decimal(), TakeProfitPrice: d.decimal(),
		TriggerPriceType: order.TriggerPriceType(d.text()), AverageFillPrice: d.decimal(), TimeInForce: order.TimeInForce(d.text()), ExpireTime: d.time(),
		PostOnly: rapid.Bool().Draw(d.T, "post"), ReduceOnly: rapid.Bool().Draw(d.T, "reduce"), ReferenceID: d.text(), Reason: order.Reason(d.text()),
		Created: d.time(), Updated: d.time()}
}

func (d drawn) leg() TradeLeg {
	return TradeLeg{d.id(), d.text(), d.text(), fixed.Money(d.int64()), d.text()}
}

func (d drawn) debt() DebtPosted {
	return DebtPosted{d.id(), d.text(), d.text(), d.text(), d.time(), d.decimal(), d.postings()}
}

func (d drawn) trade() *TradeExecuted {
	return &TradeExecuted{Code: d.id(), Symbol: d.text(), Price: d.decimal(), Amount: d.decimal(), Notional: fixed.Money(d.int64()),
		Action: order.Action(d.text()), Type: TradeType(d.text()), Taker: d.leg(), Maker: d.leg(), Positions: d.positions(), Entries: d.postings()}
}

func (d drawn) positions() (list []PositionHeld) {
	for range rapid.IntRange(0, 3).Draw(d.T, "positions") {
		list = append(list, PositionHeld{d.text(), d.text(), d.decimal(), fixed.Money(d.int64()), d.decimal()})
	}
	return list
}

func (d drawn) postings() (list []ledger.Posting) {
	for range rapid.IntRange(0, 3).Draw(d.T, "postings") {
		list = append(list, ledger.Posting{Code: d.id(), Account: ledger.Account(d.text()), CustomerCode: d.text(), Type: ledger.Type(d.text()),
			Currency: d.text(), Amount: fixed.Money(d.int64()), Balance: fixed.Money(d.int64()), Symbol: d.text(), OrderCode: d.id()})
	}
	return list
}

// FuzzParseJSON feeds bytes to both decoders: what is read by hand must be what the generic decoder reads, and whatever
// either reads must be written by hand as the generic encoder writes it.
func FuzzParseJSON(f *testing.F) {
	d := newEngine(f, 2)
	seed := func(events []decide.Event) {
		for _, e := range events {
			if data, err := json.Marshal(e); err == nil {
				_, trade := e.(*TradeExecuted)
				f.Add(data, trade)
			}
		}
	}
	seed(d.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", order.Buy, 650_000, 2)}).Events)
	gtd := limitOrder("c0", order.Buy, 640_000, 2)
	gtd.TimeInForce, gtd.ExpireTime, gtd.ReferenceID = order.GTD, start+scalar.Hour, "mine"
	seed(d.do(decide.Command{Actor: trader("alpha"), Payload: gtd}).Events)
	seed(d.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c1", order.Sell, 650_000, 1)}).Events)
	f.Add([]byte(`{"code":"00000000-0000-0000-0000-000000000000"}`), true)
	f.Fuzz(func(t *testing.T, data []byte, trade bool) {
		var generic, fast written = new(OrderOpened), new(OrderOpened)
		if trade {
			generic, fast = new(TradeExecuted), new(TradeExecuted)
		}
		err := json.Unmarshal(data, generic, json.RejectUnknownMembers(true))
		if fast.ParseJSON(data) && (err != nil || !reflect.DeepEqual(fast, generic)) {
			t.Fatalf("%s reads as\n%+v\nand not as\n%+v (%v)", data, fast, generic, err)
		}
		if err != nil {
			return
		}
		want, err := json.Marshal(generic)
		got, gotErr := generic.AppendJSON(nil)
		if (err == nil) != (gotErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("written as\n%s (%v)\nand not as\n%s (%v)", got, gotErr, want, err)
		}
	})
}

func BenchmarkWriteOrder(b *testing.B) {
	e := newEngine(b, 1).do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", order.Buy, 650_000, 2)}).Events[0]
	b.Run("generic", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(e, json.Deterministic(true)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		buffer := make([]byte, 0, 1024)
		for b.Loop() {
			if _, err := e.(written).AppendJSON(buffer); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReadOrder(b *testing.B) {
	e := newEngine(b, 1).do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", order.Buy, 650_000, 2)}).Events[0]
	data, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("generic", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := json.Unmarshal(data, new(OrderOpened), json.RejectUnknownMembers(true)); err != nil {
				b.Fatal(err)
			}
		}
	})
	r := eventTable.Registry()
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Decode("order.opened", 1, data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
