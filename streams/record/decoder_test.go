package record

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// written are values of the forms that are read in one pass, with one thing or another in each.
func written(t testing.TB) [][]byte {
	t.Helper()
	at, err := scalar.ParseTime("2026-03-31T08:00:00.000001Z")
	if err != nil {
		t.Fatal(err)
	}
	id := scalar.ID{1, 2, 3, 0xab, 0xcd, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	limit := order.Order{Code: id, CustomerCode: "c1", Broker: "alpha", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Status: order.Open,
		Amount: fixed.Decimal{Coef: 1500, Scale: 3}, FilledAmount: fixed.Decimal{Scale: 3}, LimitPrice: fixed.Decimal{Coef: 650001, Scale: 1},
		TimeInForce: order.GTD, ExpireTime: at + scalar.Day, ReferenceID: "mine", Created: at, Updated: at}
	cash := order.Order{Code: id, CustomerCode: "c2", Broker: "alpha", Symbol: "BTCUSDC_PERP", Action: order.Sell, Type: order.Market, Status: order.Rejected,
		CashAmount: 5 * fixed.Unit, TimeInForce: order.IOC, ReduceOnly: true, ReferenceID: id.String(), Reason: order.NoLiquidity, Created: at, Updated: at}
	trade := &trading.TradeExecuted{Code: id, Symbol: "BTCUSDC_PERP", Price: fixed.Decimal{Coef: 650001, Scale: 1}, Amount: fixed.Decimal{Coef: 1, Scale: 3},
		Notional: 65 * fixed.Unit, Action: order.Buy, Type: trading.Trade, Taker: trading.TradeLeg{OrderCode: id, CustomerCode: "c1", Broker: "alpha", Fee: -3, ReferenceID: "r"},
		Positions: []trading.PositionHeld{{CustomerCode: "c1", Symbol: "BTCUSDC_PERP", Amount: fixed.Decimal{Coef: -1, Scale: 3}, Cost: -65 * fixed.Unit}},
		Entries:   []ledger.Posting{{Code: id, CustomerCode: "c1", Type: ledger.TradeFee, Currency: ledger.USDC, Amount: 3, Balance: 7, OrderCode: id}, {Account: ledger.Fees, Type: ledger.TradeFee, Currency: ledger.USDC}}}
	input := ""
	record := func(kept decide.Metadata, actor decide.Actor, events ...decide.Event) []byte {
		value, err := Encode(nil, &Record{Sequence: 7, Prev: Hash{1, 0xfe}, Time: at, Outcome: decide.Accepted, Events: events, Input: input,
			Command: decide.Recorded{ID: id, Type: "order.place", Actor: actor, Metadata: kept}})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	values := [][]byte{
		record(decide.Metadata{}, decide.Actor{Sub: "u", Broker: "alpha", Customer: "c1"}, &trading.OrderOpened{Order: limit}),
		record(decide.Metadata{Key: "k", Fingerprint: "f"}, decide.Actor{Broker: "alpha"}, &trading.OrderRejected{Order: cash}),
		record(decide.Metadata{Fingerprint: "f"}, decide.Engine, &trading.OrderFilled{Order: limit}, trade, &trading.OrderPartiallyFilled{Order: cash}, &trading.OrderCanceled{Order: limit}),
		record(decide.Metadata{Source: &decide.Source{Journal: "identity", Sequence: 3}}, decide.Engine, trade),
		record(decide.Metadata{}, decide.Engine, &trading.CustomerRegistered{CustomerCode: "c", Broker: "b", Name: "n", Created: at}, &trading.OrderOpened{Order: limit}),
	}
	rate := fixed.Decimal{Coef: 12, Scale: 8}
	debt := trading.DebtPosted{Code: id, CustomerCode: "c1", Broker: "alpha", Symbol: "BTCUSDC_PERP", Time: at, MarkPrice: fixed.Decimal{Coef: 650001, Scale: 1}, Entries: trade.Entries[1:]}
	values = append(values, record(decide.Metadata{}, decide.Engine, &trading.IndexUpdated{Symbol: "BTCUSDC_PERP", IndexPrice: debt.MarkPrice, MarkPrice: debt.MarkPrice, Premium: &rate},
		&trading.FundingPosted{DebtPosted: debt, PositionAmount: rate, FundingRate: rate}, &trading.SettlementPosted{Positions: trade.Positions}))
	input = `{"amount":"2","given":["a}\""],"of":{"leverage":7}}`
	return append(values, record(decide.Metadata{}, decide.Actor{Sub: "u"}, &trading.OrderOpened{Order: limit}),
		record(decide.Metadata{Key: "k", Session: id, Source: &decide.Source{Journal: "identity", Sequence: 3}}, decide.Engine, trade))
}

// checkDecoders compares the reading in one pass with that piece by piece.
func checkDecoders(t testing.TB, fast, slow *Decoder, value []byte) (accepted bool) {
	t.Helper()
	var want *Record
	e, err := parseEnvelope(value)
	if err == nil {
		if head, failed := fast.Head(value); failed != nil || !reflect.DeepEqual(head, &e.record) {
			t.Fatalf("%s\nhas the head\n%+v (%v)\nand should have\n%+v", value, head, failed, &e.record)
		}
		want, err = e.finish(slow.journal, slow.rules)
	}
	got, ok := fast.written(value, nil)
	if ok && (err != nil || !reflect.DeepEqual(got, want)) {
		t.Fatalf("%s\nis read in one pass as\n%+v\nand piece by piece as\n%+v (%v)", value, got, want, err)
	}
	again, againErr := fast.Decode(value)
	if (againErr == nil) != (err == nil) || err == nil && !reflect.DeepEqual(again, want) {
		t.Fatalf("%s\nis decoded as\n%+v (%v)\nand should be\n%+v (%v)", value, again, againErr, want, err)
	}
	return ok
}

func newDecoders() (fast, slow *Decoder) {
	registry := trading.Rules().Registry()
	return NewDecoder(registry), NewDecoder(registry)
}

// insertions returns what is put in place of a byte and before it: each of some characters, or, where that takes too long,
// three of them in turn, so that each comes in every few places.
func insertions(at int) []byte {
	all := []byte("\"0 91-.}A\\\x00\x7f\xc3,a")
	if everyPair {
		return all
	}
	three := make([]byte, 3)
	for i := range three {
		three[i] = all[(3*at+i)%len(all)]
	}
	return three
}

// TestDecoder changes each byte of records, leaves it out and puts others before it.
func TestDecoder(t *testing.T) {
	fast, slow := newDecoders()
	values := written(t)
	for i, want := range []bool{true, true, true, false, true, true, true, false} {
		if got := checkDecoders(t, fast, slow, values[i]); got != want {
			t.Errorf("record %d is read in one pass: %v", i, got)
		}
	}
	accepted := 0
	for _, value := range values {
		for at := range value {
			for _, c := range insertions(at) {
				changed := bytes.Clone(value)
				changed[at] = c
				if checkDecoders(t, fast, slow, changed) {
					accepted++
				}
				checkDecoders(t, fast, slow, append(append(bytes.Clone(value[:at]), c), value[at:]...))
			}
			checkDecoders(t, fast, slow, append(bytes.Clone(value[:at]), value[at+1:]...))
			checkDecoders(t, fast, slow, value[:at])
		}
	}
	if accepted == 0 {
		t.Error("nothing that was changed is a record")
	}
	if _, ok := fast.written(values[0], &Hash{9}); ok {
		t.Error("a record of another chain is read")
	}
}

// TestDecoderKeepsNothingOfTheBytes checks that records do not change with the buffer that they were read from, nor with
// the records that are read after them.
func TestDecoderKeepsNothingOfTheBytes(t *testing.T) {
	fast, slow := newDecoders()
	var records, wanted []*Record
	for range 3 {
		for _, value := range written(t) {
			buffer := bytes.Clone(value)
			r, err := fast.Decode(buffer)
			if err != nil {
				t.Fatal(err)
			}
			clear(buffer)
			w, err := slow.Decode(value)
			if err != nil {
				t.Fatal(err)
			}
			records, wanted = append(records, r), append(wanted, w)
		}
	}
	if !reflect.DeepEqual(records, wanted) {
		t.Error("records changed")
	}
}

func FuzzDecoder(f *testing.F) {
	for _, value := range written(f) {
		f.Add(value)
	}
	fast, slow := newDecoders()
	f.Fuzz(func(t *testing.T, value []byte) { checkDecoders(t, fast, slow, value) })
}
