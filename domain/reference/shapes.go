package reference

import "github.com/go-json-experiment/json/jsontext"

// The records and events of the journal, with the members that the audit uses. They are declared again from the schemas,
// so that the audit shares no code with the engine.

type record struct {
	Sequence int64  `json:"sequence"`
	Prev     string `json:"prev"`
	Time     moment `json:"time"`
	Command  struct {
		Type  string `json:"type"`
		Actor struct {
			Sub    string `json:"sub"`
			System string `json:"system"`
		} `json:"actor"`
		Data struct {
			Session string         `json:"session"`
			Input   jsontext.Value `json:"input"`
		} `json:"data"`
	} `json:"command"`
	Outcome string `json:"outcome"`
	Events  []struct {
		Type string         `json:"type"`
		Data jsontext.Value `json:"data"`
	} `json:"events"`
}

// stepShape is the input of a step.
type stepShape struct {
	Single bool `json:"single"`
}

type instrumentShape struct {
	Symbol                 string `json:"symbol"`
	Status                 string `json:"status"`
	PriceTick              dec    `json:"price_tick"`
	AmountStep             dec    `json:"amount_step"`
	MinAmount              dec    `json:"min_amount"`
	ContractSize           dec    `json:"contract_size"`
	MaxLeverage            int64  `json:"max_leverage"`
	FundingIntervalSeconds int64  `json:"funding_interval_seconds"`
	PriceBand              dec    `json:"price_band"`
	LimitBand              dec    `json:"limit_band"`
	MakerFee               dec    `json:"maker_fee"`
	TakerFee               dec    `json:"taker_fee"`
	IndexStaleSeconds      int64  `json:"index_stale_seconds"`
	MarginTiers            []struct {
		NotionalFrom   dec `json:"notional_from"`
		InitMarginReq  dec `json:"init_margin_req"`
		MaintMarginReq dec `json:"maint_margin_req"`
	} `json:"margin_tiers"`
}

type orderShape struct {
	Code             string `json:"code"`
	CustomerCode     string `json:"customer_code"`
	Symbol           string `json:"symbol"`
	Action           string `json:"action"`
	Type             string `json:"type"`
	Status           string `json:"status"`
	Amount           dec    `json:"amount"`
	FilledAmount     dec    `json:"filled_amount"`
	CashAmount       dec    `json:"cash_amount"`
	FilledQuote      dec    `json:"filled_quote"`
	LimitPrice       dec    `json:"limit_price"`
	TriggerPrice     dec    `json:"trigger_price"`
	StopLossPrice    dec    `json:"stop_loss_price"`
	TakeProfitPrice  dec    `json:"take_profit_price"`
	Triggered        moment `json:"triggered"`
	AverageFillPrice dec    `json:"average_fill_price"`
	TimeInForce      string `json:"time_in_force"`
	ExpireTime       moment `json:"expire_time"`
	PostOnly         bool   `json:"post_only"`
	ReduceOnly       bool   `json:"reduce_only"`
	ReferenceID      string `json:"reference_id"`
	Reason           string `json:"reason"`
	Created          moment `json:"created"`
	Updated          moment `json:"updated"`
}

type postingShape struct {
	Account      string `json:"account"`
	CustomerCode string `json:"customer_code"`
	Type         string `json:"type"`
	Currency     string `json:"currency"`
	Amount       dec    `json:"amount"`
	Balance      dec    `json:"balance"`
	Symbol       string `json:"symbol"`
}

type heldShape struct {
	CustomerCode string `json:"customer_code"`
	Symbol       string `json:"symbol"`
	Amount       dec    `json:"amount"`
	Cost         dec    `json:"cost"`
}

type sideShape struct {
	OrderCode    string `json:"order_code"`
	CustomerCode string `json:"customer_code"`
	Fee          dec    `json:"fee"`
}

type tradeShape struct {
	Symbol    string         `json:"symbol"`
	Price     dec            `json:"price"`
	Amount    dec            `json:"amount"`
	Notional  dec            `json:"notional"`
	Action    string         `json:"action"`
	Type      string         `json:"type"`
	Taker     sideShape      `json:"taker"`
	Maker     sideShape      `json:"maker"`
	Positions []heldShape    `json:"positions"`
	Postings  []postingShape `json:"postings"`
}

type transactionShape struct {
	Code         string         `json:"code"`
	CustomerCode string         `json:"customer_code"`
	Type         string         `json:"type"`
	Amount       dec            `json:"amount"`
	Status       string         `json:"status"`
	Balance      dec            `json:"balance"`
	ReferenceID  string         `json:"reference_id"`
	Postings     []postingShape `json:"postings"`
}

type debtShape struct {
	CustomerCode   string         `json:"customer_code"`
	Symbol         string         `json:"symbol"`
	Timestamp      moment         `json:"timestamp"`
	MarkPrice      dec            `json:"mark_price"`
	PositionAmount dec            `json:"position_amount"`
	FundingRate    dec            `json:"funding_rate"`
	Positions      []heldShape    `json:"positions"`
	Postings       []postingShape `json:"postings"`
}

type indexShape struct {
	Symbol     string `json:"symbol"`
	IndexPrice dec    `json:"index_price"`
	MarkPrice  dec    `json:"mark_price"`
	Premium    fine   `json:"premium"`
}

type guardShape struct {
	Symbol string `json:"symbol"`
	Stale  bool   `json:"stale"`
	Status string `json:"status"`
}

type fundingShape struct {
	Symbol          string `json:"symbol"`
	FundingRate     dec    `json:"funding_rate"`
	IndexPrice      dec    `json:"index_price"`
	MarkPrice       dec    `json:"mark_price"`
	IntervalSeconds int64  `json:"interval_seconds"`
	Timestamp       moment `json:"timestamp"`
	Missed          bool   `json:"missed"`
}

type settlementShape struct {
	Timestamp moment `json:"timestamp"`
	Marks     []struct {
		Symbol    string `json:"symbol"`
		MarkPrice dec    `json:"mark_price"`
	} `json:"marks"`
}

type firedShape struct {
	OrderCode        string `json:"order_code"`
	Symbol           string `json:"symbol"`
	Leg              string `json:"leg"`
	TriggerPrice     dec    `json:"trigger_price"`
	TriggerPriceType string `json:"trigger_price_type"`
}

type workShape struct {
	Work         string `json:"work"`
	CommandID    string `json:"command_id"`
	CustomerCode string `json:"customer_code"`
	Symbol       string `json:"symbol"`
	OrderCode    string `json:"order_code"`
	Bound        dec    `json:"bound"`
	Canceled     int    `json:"canceled"`
}

type rulesShape struct {
	Rules int `json:"rules"`
}

type rotatedShape struct {
	Generation int `json:"generation"`
}

type keyRotatedShape struct {
	Generation int    `json:"generation"`
	Previous   string `json:"previous"`
	Key        string `json:"key"`
	Until      moment `json:"until"`
}

type statedShape struct {
	Timestamp moment `json:"timestamp"`
	Position  struct {
		Sequence int64  `json:"sequence"`
		Hash     string `json:"hash"`
	} `json:"position"`
	Asset     string            `json:"asset"`
	Scale     int               `json:"scale"`
	Total     string            `json:"total"`
	Deficits  string            `json:"deficits"`
	Venue     map[string]string `json:"venue"`
	NetPaidIn string            `json:"net_paid_in"`
}

type disclosedShape struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// accountShape contains the members of all events about one customer, the fund or a session. Each event has only some of
// them.
type accountShape struct {
	Code              string         `json:"code"`
	CustomerCode      string         `json:"customer_code"`
	Symbol            string         `json:"symbol"`
	MakerFee          dec            `json:"maker_fee"`
	TakerFee          dec            `json:"taker_fee"`
	Leverage          int64          `json:"leverage"`
	InitialMargin     dec            `json:"initial_margin"`
	MaintenanceMargin dec            `json:"maintenance_margin"`
	Amount            dec            `json:"amount"`
	ExpiresAt         moment         `json:"expires_at"`
	Postings          []postingShape `json:"postings"`
	Gateway           string         `json:"gateway"`
	Session           string         `json:"session"`
	Left              int            `json:"left"`
	ReferenceID       string         `json:"reference_id"`
}
