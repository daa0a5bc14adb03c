package trading

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// plainOrders are order entries as clients write them.
func plainOrders() []string {
	return []string{
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.5","limit_price":"65000","reference_id":"r"}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"market","cash_amount":"10","leverage":"13"}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"stop_loss","amount":"1","trigger_price":"1","time_in_force":"FOK","trigger_price_type":"trade_price"}`,
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"take_profit_limit","amount":"1","trigger_price":"1","limit_price":"1","post_only":true}`,
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"take_profit_stop_loss","amount":"1","stop_loss_price":"1","take_profit_price":"2","leverage":1}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"stop_loss_limit","amount":"1","trigger_price":"64000.0","limit_price":"63900","reduce_only":true,"time_in_force":"IOC"}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"take_profit","amount":"1","trigger_price":"66000","time_in_force":"IOC","stop_loss_price":null}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"take_profit_stop_loss","amount":"1","stop_loss_price":"1","take_profit_price":"2","trigger_price_type":"mark_price","time_in_force":"GTD","expire_time":"2030-01-01T00:00:00.000000Z"}`,
		`{"symbol": "BTCUSDC_PERP", "action": "buy", "type": "limit", "amount": "0.500", "limit_price": "65000.0", "reduce_only": false,
			"trigger_price": null, "time_in_force": "GTD", "expire_time": "2030-01-01T00:00:00.000000Z"}
		`,
	}
}

// readEntry, readAmended and readNamed read an item of a batch by its form.
func readEntry(raw []byte) (*domain.PlaceOrder, error) {
	p := &domain.PlaceOrder{}
	err := input.DecodeItem(raw, domain.PlaceOrderForm(), p)
	p.CustomerCode = "A-1"
	return p, err
}

func readAmended(raw []byte) (*domain.AmendOrder, error) {
	p := &domain.AmendOrder{}
	return p, input.DecodeItem(raw, domain.AmendOneForm(), p)
}

func readNamed(raw []byte) (scalar.ID, string, error) {
	p := &domain.CancelOrder{}
	err := input.DecodeItem(raw, domain.CancelOneForm(), p)
	return p.OrderCode, p.ReferenceID, err
}

// TestUsualOrders: what clients write is decoded in one pass, and the payload does not refer to the body.
func TestUsualOrders(t *testing.T) {
	for _, body := range plainOrders() {
		want, err := thoroughly(input.Body([]byte(body), nil), "")
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		raw, payload := []byte(body), domain.PlaceOrder{}
		ok := domain.PlaceOrderForm().Decode(raw, &payload)
		clear(raw) // the next request is read into the same place, while the command is still on its way
		if !ok || payload != *want {
			t.Errorf("%s is read as %+v (%v), not as %+v", body, payload, ok, want)
		}
	}
}

// drawOrder draws an order entry of good and bad values, in any order.
func drawOrder(t *rapid.T) string {
	price := []string{`"1"`, `"65000.10"`, `"0"`, `"-1"`, `"01"`, `"0.000"`, `"1e3"`, `1`, `""`, `"999999999999999999"`, `"1234567890123456789"`,
		`"0.00000001"`, `"0.000000001"`, `"1.000000000"`, `"92233720369"`, `null`}
	members := map[string][]string{
		"symbol": {`"BTCUSDC_PERP"`, `"B"`, `""`, `"B C"`, `7`}, "action": {`"buy"`, `"sell"`, `"BUY"`, `null`},
		"type":   {`"market"`, `"limit"`, `"stop_loss"`, `"stop_loss_limit"`, `"take_profit"`, `"take_profit_limit"`, `"take_profit_stop_loss"`, `"stop_market"`},
		"amount": price, "cash_amount": price, "limit_price": price, "trigger_price": price, "stop_loss_price": price, "take_profit_price": price,
		"trigger_price_type": {`"trade_price"`, `"mark_price"`, `"index"`, `null`}, "time_in_force": {`"GTC"`, `"IOC"`, `"FOK"`, `"GTD"`, `"gtc"`, `null`},
		"expire_time": {`"2030-01-01T00:00:00.000000Z"`, `"2030-01-01T00:00:00Z"`, `"1999-12-31T23:59:59.999999Z"`, `"2030-02-30T00:00:00.000000Z"`, `null`},
		"post_only":   {`true`, `false`, `"true"`, `null`}, "reduce_only": {`true`, `false`, `0`, `null`},
		"leverage":     {`1`, `13`, `14`, `0`, `1.0`, `1e1`, `-1`, `01`, `"5"`, `"13"`, `"05"`, `"+5"`, `" 5"`, `"5 "`, `""`, `100`, `1000`, `true`, `null`},
		"reference_id": {`"r-1"`, `"a b"`, `""`, `7`, `null`}, "x": {`1`, `{}`},
	}
	names := slices.Sorted(maps.Keys(members))
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n"})
	var b strings.Builder
	b.WriteString(space.Draw(t, "space") + "{")
	add := func(name, value string) {
		if !strings.HasSuffix(b.String(), "{") {
			b.WriteString(",")
		}
		b.WriteString(space.Draw(t, "space") + strconv.Quote(name) + space.Draw(t, "space") + ":" + space.Draw(t, "space") + value + space.Draw(t, "space"))
	}
	kind := rapid.SampledFrom(members["type"]).Draw(t, "kind")
	usual := []string{"symbol", `"B"`, "action", `"buy"`, "type", kind, "amount", `"1"`}
	if strings.Contains(kind, "limit") {
		usual = append(usual, "limit_price", `"2.0"`)
	}
	if strings.HasPrefix(kind, `"stop_`) || strings.HasPrefix(kind, `"take_`) && kind != `"take_profit_stop_loss"` {
		usual = append(usual, "trigger_price", `"3"`)
	}
	if kind == `"take_profit_stop_loss"` {
		usual = append(usual, "stop_loss_price", `"1"`, "take_profit_price", `"2"`)
	}
	left := rapid.IntRange(-1, len(usual)/2-1).Draw(t, "left out") // none, or one of them
	if rapid.Bool().Draw(t, "complete") {
		left = -1
	}
	for i := 0; i < len(usual); i += 2 {
		if i/2 != left {
			add(usual[i], usual[i+1])
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		add(name, rapid.SampledFrom(members[name]).Draw(t, "value"))
	}
	b.WriteString(rapid.SampledFrom([]string{"}", "}", "} ", "}\n", "}}", "} x", "", ",}"}).Draw(t, "end"))
	return b.String()
}

// agree compares what the form reads of an order entry with the earlier readers: the payload and its fingerprint, or each
// error. It returns the payload, or nil.
func agree(t interface{ Fatalf(string, ...any) }, body string) *domain.PlaceOrder {
	want, refused := thoroughly(input.Body([]byte(body), nil), "A-1")
	payload, err := readEntry([]byte(body))
	if faultsOf(err) != faultsOf(refused) {
		t.Fatalf("%s has the errors\n%s\nand not\n%s", body, faultsOf(err), faultsOf(refused))
	}
	if plain := plainOrder([]byte(body), "A-1"); plain != nil && !domain.PlaceOrderForm().Decode([]byte(body), &domain.PlaceOrder{}) {
		t.Fatalf("%s was read in one pass", body)
	}
	if err != nil {
		return nil
	}
	if *payload != *want {
		t.Fatalf("%s is read as %+v, not as %+v", body, payload, want)
	}
	if got, want := orderFingerprint(payload), input.FingerprintOf(normal(payload)); got != want {
		t.Fatalf("%s has the fingerprint %s, not %s", body, got, want)
	}
	return payload
}

// TestReadersAgree compares the form of an order entry with the earlier readers on random bodies.
func TestReadersAgree(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		if agree(t, drawOrder(t)) != nil {
			read++
		}
	})
	if read == 0 {
		t.Error("no order was without an error")
	}
}

// FuzzAmendment compares the forms of amendments and names of orders with the earlier readers.
func FuzzAmendment(f *testing.F) {
	for _, body := range []string{
		`{"amount":"1.50","expire_time":1893456000000}`, `{"order_code":"00000000-0000-8000-8000-00000000000a","limit_price":"1"}`, `{"reference_id":"r","amount":null}`,
		`{"order_code":null,"reference_id":"r"}`, `{}`, `{"reference_id":"r","order_code":"x"}`, `{"amount":"1","amount":"2"}`, `{"trigger_price":"0","x":1}`, `7`, `{`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		form := input.Body([]byte(body), nil)
		code, reference := nameIn(form)
		want := readAmendment(form)
		want.OrderCode, want.ReferenceID = code, reference
		refused := form.Done()
		got, err := readAmended([]byte(body))
		if a, b := shownAmendment(got, err), shownAmendment(want, refused); a != b {
			t.Errorf("%s is read as an item\n%s\nand not\n%s", body, a, b)
		}
		form = input.Body([]byte(body), nil)
		want, refused = readAmendment(form), form.Done()
		got = &domain.AmendOrder{}
		err = input.DecodeItem([]byte(body), domain.AmendOrderForm(), got)
		if a, b := shownAmendment(got, err), shownAmendment(want, refused); a != b {
			t.Errorf("%s is read\n%s\nand not\n%s", body, a, b)
		}
		code, reference, refused = readName([]byte(body))
		named, name, err := readNamed([]byte(body))
		if faultsOf(err) != faultsOf(refused) || err == nil && (named != code || name != reference) {
			t.Errorf("%s names %s %q (%v), not %s %q (%v)", body, named, name, err, code, reference, refused)
		}
	})
}

// TestFrozenFingerprints compares the fingerprints of order entries with those of earlier builds.
func TestFrozenFingerprints(t *testing.T) {
	for _, body := range plainOrders() {
		payload, err := readEntry([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		recordtest.Frozen(t, strings.Join(strings.Fields(body), ""), orderFingerprint(payload))
	}
	var prints recordtest.Digest
	for seed := range 20_000 {
		if payload, err := readEntry([]byte(rapid.Custom(drawOrder).Example(seed))); err == nil {
			prints.Add([]byte(orderFingerprint(payload)))
		}
	}
	prints.Check(t, "random orders")
}

// FuzzOrderEntry compares the form of an order entry with the earlier readers. A valid entry must have no error left but
// those that only the engine can see: of the instrument's grid and bounds, and of the time.
func FuzzOrderEntry(f *testing.F) {
	for _, body := range plainOrders() {
		f.Add(body)
	}
	for _, body := range []string{
		`{"symbol":"B","action":"buy","type":"market","cash_amount":"1.000000000"}`,
		`{"symbol":"B","action":"buy","type":"limit","amount":"1","limit_price":"1","leverage":1.0}`,
		`{"symbol":"B","action":"buy","type":"limit","amount":"1","limit_price":"1","post_only":null,"post_only":true}`,
		`{"symbol":"B","action":"buy","type":"limit","amount":null,"limit_price":"1"}`,
		`{"symbol":"B","action":"buy","type":"limit","amount":"1","limit_price":"-0"} 1`,
		`{"symbol":"B","action":"sell","type":"stop_market","amount":"1","trigger_price":"1"}`,
		`{"symbol":"B","action":"sell","type":"stop_loss","amount":"1","trigger_price":"1","stop_price":"1"}`,
		`{"symbol":"B","action":"sell","type":"stop_loss","cash_amount":"1","trigger_price":"1","post_only":true}`,
		`{"symbol":"B","action":"sell","type":"take_profit_stop_loss","amount":"1","stop_loss_price":"1","trigger_price_type":"trade_price"}`,
		`{"symbol":"\ud800","action":1e5,"type":null,"x":[{}]}`,
	} {
		f.Add(body)
	}
	instrument := market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		MaxLeverage: 13, FundingIntervalSeconds: 3600}
	for text, to := range map[string]interface{ UnmarshalText([]byte) error }{
		"0.1": &instrument.PriceTick, "0.001": &instrument.AmountStep, "0.002": &instrument.MinAmount, "1000": &instrument.MaxAmount, "1": &instrument.ContractSize,
		"5": &instrument.InitMarginReq, "2.5": &instrument.MaintMarginReq, "6": &instrument.PriceBand, "20": &instrument.LimitBand,
	} {
		if err := to.UnmarshalText([]byte(text)); err != nil {
			f.Fatal(err)
		}
	}
	contract := market.NewContract(instrument.Normal())
	engine := []string{"INVALID_AMOUNT_STEP", "AMOUNT_BELOW_MINIMUM", "AMOUNT_ABOVE_MAXIMUM", "INVALID_PRICE_TICK", "INVALID_PRICE",
		"INVALID_CASH_AMOUNT", "INVALID_EXPIRE_TIME"}
	f.Fuzz(func(t *testing.T, body string) {
		payload := agree(t, body)
		if payload == nil {
			return
		}
		for _, fault := range domain.CheckOrder(contract, payload, 0) {
			if !slices.Contains(engine, fault.Code) {
				t.Errorf("%s is let through with %v", body, fault)
			}
		}
	})
}

// BenchmarkReadEntry reads an order entry and makes its fingerprint, with the form and with the earlier readers.
func BenchmarkReadEntry(b *testing.B) {
	raw := []byte(`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.005","limit_price":"64999.5","time_in_force":"GTC"}`)
	b.Run("form", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			payload := &domain.PlaceOrder{}
			if !domain.PlaceOrderForm().Decode(raw, payload) {
				b.Fatal("not read")
			}
		}
	})
	b.Run("earlier", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if plainOrder(raw, "A-1") == nil {
				b.Fatal("not read")
			}
		}
	})
	payload, _ := readEntry(raw)
	b.Run("form's fingerprint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			orderFingerprint(payload)
		}
	})
}
