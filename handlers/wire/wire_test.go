package wire

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

var (
	decimal = rapid.Custom(func(t *rapid.T) fixed.Decimal {
		return fixed.Decimal{Coef: rapid.Int64Range(-1e17, 1e17).Draw(t, "coef"), Scale: uint8(rapid.IntRange(0, 8).Draw(t, "scale"))}
	})
	absent = rapid.OneOf(rapid.Just(fixed.Decimal{}), rapid.Just(fixed.Decimal{Scale: 1}), decimal)
	money  = rapid.Custom(func(t *rapid.T) fixed.Money { return fixed.Money(rapid.Int64().Draw(t, "money")) })
	moment = rapid.Custom(func(t *rapid.T) scalar.Time { return scalar.Time(rapid.Int64Range(0, 4e15).Draw(t, "time")) })
	text   = rapid.OneOf(rapid.Just(""), rapid.String())
	code   = rapid.Custom(func(t *rapid.T) (id scalar.ID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), len(id), len(id)).Draw(t, "code"))
		return id
	})
)

func drawOrder(t *rapid.T) *order.Order {
	text := func(name string) string { return text.Draw(t, name) }
	return &order.Order{Code: code.Draw(t, "code"), CustomerCode: text("customer"), Symbol: text("symbol"),
		Action: order.Action(text("action")), Type: order.Type(text("type")), Status: order.Status(text("status")),
		Amount: decimal.Draw(t, "amount"), FilledAmount: decimal.Draw(t, "filled"), CashAmount: money.Draw(t, "cash"),
		FilledQuote: money.Draw(t, "quote"), LimitPrice: absent.Draw(t, "limit"), TriggerPrice: absent.Draw(t, "trigger"),
		StopLossPrice: absent.Draw(t, "stop"), TakeProfitPrice: absent.Draw(t, "take"),
		TriggerPriceType: order.TriggerPriceType(text("by")), Triggered: scalar.Time(rapid.SampledFrom([]int64{0, 1_774_944_000_000_000}).Draw(t, "triggered")), AverageFillPrice: absent.Draw(t, "average"),
		TimeInForce: order.TimeInForce(text("tif")), ExpireTime: rapid.OneOf(rapid.Just(scalar.Time(0)), moment).Draw(t, "expires"),
		PostOnly: rapid.Bool().Draw(t, "post"), ReduceOnly: rapid.Bool().Draw(t, "reduce"), ReferenceID: text("reference"),
		Reason: order.Reason(text("reason")), Created: moment.Draw(t, "created"), Updated: moment.Draw(t, "updated")}
}

func drawTrade(t *rapid.T) *TradeMessage {
	text := func(name string) string { return text.Draw(t, name) }
	return &TradeMessage{Channel: text("channel"), Kind: text("kind"),
		TradeHead: TradeHead{Code: code.Draw(t, "code"), OrderCode: NullIfZero(code.Draw(t, "order")), CustomerCode: text("customer"),
			Symbol: text("symbol"), Action: order.Action(text("action")), Price: decimal.Draw(t, "price"),
			Amount: decimal.Draw(t, "amount"), Notional: money.Draw(t, "notional"), Fee: money.Draw(t, "fee"),
			FeeCurrency: text("currency"), Role: trading.Role(text("role"))},
		Type: trading.TradeType(text("type")), TradeRest: TradeRest{ReferenceID: NullIfZero(text("reference")), Timestamp: moment.Draw(t, "at"), Sequence: rapid.Int64().Draw(t, "sequence"),
			Ordinal: rapid.IntRange(0, 99).Draw(t, "ordinal")}}
}

func drawMarketTrade(t *rapid.T) *MarketTradeMessage {
	text := func(name string) string { return text.Draw(t, name) }
	return &MarketTradeMessage{Channel: text("channel"), Symbol: text("symbol"), Code: code.Draw(t, "code"),
		MarketTradeRest: MarketTradeRest{Price: decimal.Draw(t, "price"), Amount: decimal.Draw(t, "amount"),
			Action: order.Action(text("action")), Type: trading.TradeType(text("type")), Timestamp: moment.Draw(t, "at"),
			Sequence: rapid.Int64().Draw(t, "sequence"), Ordinal: rapid.IntRange(0, 99).Draw(t, "ordinal")}}
}

// candles is a list as the generic encoder and Candles write it.
type candles []Candle

func (list candles) AppendJSON(b []byte) ([]byte, error) {
	w := NewCandles(len(list))
	for i := range list {
		w.Add(&list[i])
	}
	return w.AppendJSON(b)
}

// listOf is a list for the generic encoder.
type listOf[T any] []T

// genericOrder is the REST form of an order. Nullable members are always present; cash_amount and trigger_price_type are
// omitted where they do not apply.
type genericOrder struct {
	orderHead
	Type order.Type `json:"type"`
	orderRest
	Updated  scalar.Time `json:"updated"`
	Sequence int64       `json:"sequence"` // of the record that last changed the order
}

// genericMessage is an order on the orders channel.
type genericMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"` // the message type, always "update"
	orderHead
	Type order.Type `json:"order_type"` // how the order executes, which may differ from the submitted type
	orderRest
	Timestamp scalar.Time `json:"timestamp"`
	Sequence  int64       `json:"sequence"`
}

// orderHead holds the leading members, which both forms of an order share.
type orderHead struct {
	Code         scalar.ID    `json:"code"`
	CustomerCode string       `json:"customer_code"`
	Symbol       string       `json:"symbol"`
	Action       order.Action `json:"action"`
}

// orderRest holds the members after the type, which both forms of an order share.
type orderRest struct {
	Status           order.Status           `json:"status"`
	Amount           fixed.Decimal          `json:"amount"`
	FilledAmount     fixed.Decimal          `json:"filled_amount"`
	CashAmount       fixed.Money            `json:"cash_amount,omitzero"`
	FilledQuote      fixed.Money            `json:"filled_quote"`
	LimitPrice       Price                  `json:"limit_price"`
	TriggerPrice     Price                  `json:"trigger_price"`
	StopLossPrice    Price                  `json:"stop_loss_price"`
	TakeProfitPrice  Price                  `json:"take_profit_price"`
	TriggerPriceType order.TriggerPriceType `json:"trigger_price_type,omitzero"`
	Triggered        Nullable[scalar.Time]  `json:"triggered"` // when a stop was triggered
	AverageFillPrice Price                  `json:"average_fill_price"`
	TimeInForce      order.TimeInForce      `json:"time_in_force"`
	ExpireTime       Nullable[scalar.Time]  `json:"expire_time"`
	PostOnly         bool                   `json:"post_only"`
	ReduceOnly       bool                   `json:"reduce_only"`
	ReferenceID      string                 `json:"reference_id"`
	Reason           Nullable[order.Reason] `json:"reason"`
	Created          scalar.Time            `json:"created"`
}

// newGenericOrder converts an order to its REST form. The sequence is that of the record that last changed it.
func newGenericOrder(o *order.Order, sequence int64) genericOrder {
	return genericOrder{headOf(o), o.Type, restOf(o), o.Updated, sequence}
}

// newGenericMessage converts an order to a channel message. The sequence is that of the record that last changed it.
func newGenericMessage(channel string, o *order.Order, sequence int64) *genericMessage {
	return &genericMessage{channel, Update, headOf(o), o.Type.Mechanical(), restOf(o), o.Updated, sequence}
}

func headOf(o *order.Order) orderHead { return orderHead{o.Code, o.CustomerCode, o.Symbol, o.Action} }

func restOf(o *order.Order) orderRest {
	return orderRest{
		Status: o.Status, Amount: o.Amount, FilledAmount: o.FilledAmount, CashAmount: o.CashAmount, FilledQuote: o.FilledQuote,
		LimitPrice: Price(o.LimitPrice), TriggerPrice: Price(o.TriggerPrice), StopLossPrice: Price(o.StopLossPrice),
		TakeProfitPrice: Price(o.TakeProfitPrice), TriggerPriceType: o.TriggerPriceType, Triggered: NullIfZero(o.Triggered),
		AverageFillPrice: Price(o.AverageFillPrice), TimeInForce: o.TimeInForce, ExpireTime: NullIfZero(o.ExpireTime),
		PostOnly: o.PostOnly, ReduceOnly: o.ReduceOnly, ReferenceID: o.ReferenceID, Reason: NullIfZero(o.Reason),
		Created: o.Created,
	}
}

// drawn is a value with its own encoder, and the same value for the generic encoder.
type drawn struct {
	shown interface {
		AppendJSON(b []byte) ([]byte, error)
	}
	generic any
}

// TestByHand holds what is written by hand against the generic encoder.
func TestByHand(t *testing.T) {
	for name, draw := range map[string]func(t *rapid.T) drawn{
		"order": func(t *rapid.T) drawn {
			o, sequence := drawOrder(t), rapid.Int64().Draw(t, "sequence")
			shown := NewOrder(o, sequence)
			return drawn{&shown, newGenericOrder(o, sequence)}
		},
		"order message": func(t *rapid.T) drawn {
			channel, o, sequence := text.Draw(t, "channel"), drawOrder(t), rapid.Int64().Draw(t, "sequence")
			return drawn{NewOrderMessage(channel, o, sequence), newGenericMessage(channel, o, sequence)}
		},
		"orders": func(t *rapid.T) drawn {
			list, generic := Orders{}, listOf[genericOrder]{}
			for range rapid.IntRange(0, 3).Draw(t, "orders") {
				o, sequence := drawOrder(t), rapid.Int64().Draw(t, "sequence")
				list, generic = append(list, NewOrder(o, sequence)), append(generic, newGenericOrder(o, sequence))
			}
			return drawn{list, generic}
		},
		"candles": func(t *rapid.T) drawn {
			list := candles{}
			for range rapid.IntRange(0, 3).Draw(t, "candles") {
				price := func(name string) string { return decimal.Draw(t, name).String() }
				k := Candle{Time: moment.Draw(t, "time"), Open: price("open"), High: price("high"), Low: price("low"), Close: price("close"), Closed: rapid.Bool().Draw(t, "closed")}
				if rapid.Bool().Draw(t, "traded") {
					k.Traded = &Traded{price("volume"), price("turnover"), rapid.Int64().Draw(t, "trades")}
				}
				list = append(list, k)
			}
			return drawn{list, list}
		},
		"trade message":        func(t *rapid.T) drawn { v := drawTrade(t); return drawn{v, v} },
		"market trade message": func(t *rapid.T) drawn { v := drawMarketTrade(t); return drawn{v, v} },
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			v := draw(t)
			want, err := json.Marshal(v.generic, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(v.shown); err != nil || string(got) != string(want) {
				t.Fatalf("%s, %v, want %s", got, err, want)
			}
			got, err := v.shown.AppendJSON([]byte("before"))
			if err != nil || string(got) != "before"+string(want) {
				t.Fatalf("%s, %v, want %s", got, err, want)
			}
		}))
	}
}

// TestShapes spells every shape out once: the order of members is what clients saw from the beginning.
func TestShapes(t *testing.T) {
	id, err := scalar.ParseID("019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e")
	if err != nil {
		t.Fatal(err)
	}
	const at scalar.Time = 1_774_944_000_000_000
	one, tenth := fixed.Decimal{Coef: 1000, Scale: 3}, fixed.Decimal{Coef: 650001, Scale: 1}
	o := &order.Order{Code: id, CustomerCode: "A-1", Broker: "alpha", Symbol: "B", Action: order.Buy, Type: order.StopLossLimit,
		Status: order.Canceled, Amount: one, FilledAmount: one, CashAmount: 5e8, LimitPrice: tenth, TriggerPrice: tenth,
		TriggerPriceType: order.TradePrice, AverageFillPrice: tenth, TimeInForce: order.GTD, ExpireTime: at, ReferenceID: "r",
		Reason: order.NoLiquidity, Created: at, Updated: at}
	head := `"code":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","customer_code":"A-1",`
	const orderRest = `"status":"canceled","amount":"1.000","filled_amount":"1.000","cash_amount":"5","filled_quote":"0",` +
		`"limit_price":"65000.1","trigger_price":"65000.1","stop_loss_price":null,"take_profit_price":null,` +
		`"trigger_price_type":"trade_price","triggered":null,"average_fill_price":"65000.1","time_in_force":"GTD",` +
		`"expire_time":"2026-03-31T08:00:00.000000Z","post_only":false,"reduce_only":false,"reference_id":"r",` +
		`"reason":"no_liquidity","created":"2026-03-31T08:00:00.000000Z",`
	trade := Trade{TradeHead{id, NullIfZero(id), "A-1", "B", order.Sell, tenth, one, 5e8, 1, "USDC", "taker"}, trading.Liquidation, TradeRest{NullIfZero("r"), at, 7, 2}}
	tradeHead := `"code":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","order_code":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","customer_code":"A-1",` +
		`"symbol":"B","action":"sell","price":"65000.1","amount":"1.000","notional":"5","fee":"0.00000001","fee_currency":"USDC","role":"taker",`
	const tradeRest = `"reference_id":"r","timestamp":"2026-03-31T08:00:00.000000Z","sequence":7,"ordinal":2}`
	public := MarketTradeRest{tenth, one, order.Sell, trading.Trade, at, 7, 2}
	const publicRest = `"price":"65000.1","amount":"1.000","action":"sell","type":"trade","timestamp":"2026-03-31T08:00:00.000000Z","sequence":7,"ordinal":2}`
	moved := NewTransaction(&ledger.Row{Code: id, CustomerCode: "A-1", Type: ledger.TradeFee, Currency: "USDC", Amount: -1,
		Status: ledger.Completed, Balance: 5e8, BalanceAsOf: at, Symbol: "B", OrderCode: id, Updated: at, Sequence: 7})
	const movedRest = `"currency":"USDC","amount":"-0.00000001","status":"completed","balance":"5","balance_as_of":"2026-03-31T08:00:00.000000Z",` +
		`"symbol":"B","order_code":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","timestamp":"2026-03-31T08:00:00.000000Z","sequence":7}`
	asked := NewTransaction(&ledger.Row{Code: id, CustomerCode: "A-1", Type: ledger.Withdrawal, Currency: "USDC", Amount: -5e8,
		Status: ledger.Pending, ReferenceID: "r", Updated: at, Sequence: 7})
	instrument := &market.Instrument{Symbol: "B", Underlying: "U", QuoteCurrency: "Q", SettlementCurrency: "S", Status: market.Open,
		PriceTick: tenth, AmountStep: one, MinAmount: one, MaxAmount: one, ContractSize: one, InitMarginReq: fixed.Decimal{Coef: 76923, Scale: 4},
		MaintMarginReq: fixed.Decimal{Coef: 5}, MaxLeverage: 13, FundingIntervalSeconds: 3600, PriceBand: one, LimitBand: one, MakerFee: one,
		TakerFee: one, IndexStaleSeconds: 9, Tiers: []market.Tier{{InitMarginReq: one, MaintMarginReq: one, MaxLeverage: 100}, {NotionalFrom: 5e8, InitMarginReq: one, MaintMarginReq: one, MaxLeverage: 5}}}
	const instrumentText = `{"symbol":"B","underlying":"U","base_currency":"U","quote_currency":"Q","settlement_currency":"S","status":"open","price_tick":"65000.1",` +
		`"amount_step":"1.000","min_amount":"1.000","max_amount":"1.000","contract_size":"1.000","init_margin_req":"7.70","maint_margin_req":"5.00",` +
		`"max_leverage":13,"margin_tiers":[{"notional_from":"0","init_margin_req":"1.00","maint_margin_req":"1.00","max_leverage":13},` +
		`{"notional_from":"5","init_margin_req":"1.00","maint_margin_req":"1.00","max_leverage":5}],"maker_fee":"1.000","taker_fee":"1.000",` +
		`"price_band":"1.000","limit_band":"1.000","funding_interval_seconds":3600,"created":"2026-03-31T08:00:00.000000Z"`
	for _, tt := range []struct {
		shown any
		want  string
	}{
		{NewOrder(o, 7), `{` + head + `"symbol":"B","action":"buy","type":"stop_loss_limit",` + orderRest + `"updated":"2026-03-31T08:00:00.000000Z","sequence":7}`},
		{NewOrderMessage("orders", o, 7), `{"channel":"orders","type":"update",` + head + `"symbol":"B","action":"buy","order_type":"stop_limit",` +
			orderRest + `"timestamp":"2026-03-31T08:00:00.000000Z","sequence":7}`},
		{trade, `{` + tradeHead + `"type":"liquidation",` + tradeRest},
		{&TradeMessage{"trades", Update, trade.TradeHead, trade.Type, trade.TradeRest},
			`{"channel":"trades","type":"update",` + tradeHead + `"trade_type":"liquidation",` + tradeRest},
		{MarketTrade{id, "B", public}, `{"code":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e","symbol":"B",` + publicRest},
		{&MarketTradeMessage{"market-trades:B", "B", id, public},
			`{"channel":"market-trades:B","symbol":"B","code":"019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e",` + publicRest},
		{moved, `{"id":"28d28ad3-8827-8ca6-ac95-c4a0bcd36262",` + head + `"type":"trade_fee",` + movedRest},
		{moved.Message("balance-changes"), `{"channel":"balance-changes","type":"update","id":"28d28ad3-8827-8ca6-ac95-c4a0bcd36262",` + head + `"transaction_type":"trade_fee",` + movedRest},
		{asked, `{"id":"58a2e42c-4160-8ddd-9423-a14324e8c375",` + head + `"type":"withdrawal","currency":"USDC","amount":"-5","status":"pending","symbol":null,"order_code":null,` +
			`"reference_id":"r","timestamp":"2026-03-31T08:00:00.000000Z","sequence":7}`},
		{NewInstrument(instrument, market.Open, at), instrumentText + `}`},
		{NewOperatedInstrument(instrument, at), instrumentText + `,"index_stale_seconds":9}`},
	} {
		if got, err := json.Marshal(tt.shown); err != nil || string(got) != tt.want {
			t.Errorf("%T is\n%s (%v), want\n%s", tt.shown, got, err, tt.want)
		}
	}
}

func TestPercentRoundsUp(t *testing.T) {
	for in, want := range map[string]string{"7.6923": "7.70", "5": "5.00", "5.00": "5.00", "5.0001": "5.01", "3.85": "3.85", "0.0100": "0.01", "12.5": "12.50"} {
		d, err := fixed.ParseDecimal(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := Percent(d).String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func BenchmarkOrderByHand(b *testing.B) {
	o := &order.Order{CustomerCode: "A-1", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Status: order.Open,
		Amount: fixed.Decimal{Coef: 1000, Scale: 3}, FilledAmount: fixed.Decimal{Scale: 3}, LimitPrice: fixed.Decimal{Coef: 650001, Scale: 1},
		TimeInForce: order.GTC, Created: 1_774_944_000_000_000, Updated: 1_774_944_000_000_000}
	buffer := make([]byte, 0, OrderSize)
	b.ReportAllocs()
	for b.Loop() {
		shown := NewOrder(o, 7)
		if _, err := shown.AppendJSON(buffer); err != nil {
			b.Fatal(err)
		}
	}
}
