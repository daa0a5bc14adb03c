package admin

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// maxTiers limits the margin brackets of a request.
const maxTiers = 32

// instrumentRoutes returns the routes of instruments and of their index prices.
func (h *Handler) instrumentRoutes() []rest.Route {
	return []rest.Route{
		read("/instruments", h.listInstruments),
		post("/instruments", h.listInstrument),
		read("/instruments/:symbol", h.getInstrument),
		patch("/instruments/:symbol", h.changeInstrument),
		remove("/instruments/:symbol", h.delistInstrument),
		post("/index-prices/:symbol", h.setIndexPrice),
	}
}

func decimal(coef int64, scale uint8) fixed.Decimal { return fixed.Decimal{Coef: coef, Scale: scale} }

// listInstrument lists a new instrument. It checks the combination of parameters with package market and the
// rules in force, so that the response contains all errors. The engine repeats the checks.
func (h *Handler) listInstrument(c echo.Context) error {
	body := rest.BodyOnly(c)
	i := market.Instrument{
		Symbol:                 body.String("symbol"),
		Underlying:             body.String("underlying"),
		QuoteCurrency:          body.OptionalString("quote_currency").Or("USDC"),
		SettlementCurrency:     body.OptionalString("settlement_currency").Or("USDC"),
		Status:                 market.Status(body.OptionalEnum("status", statuses()...).Or(string(market.Open))),
		PriceTick:              body.Decimal("price_tick", form.Positive),
		AmountStep:             body.Decimal("amount_step", form.Positive),
		MaxAmount:              body.Decimal("max_amount", form.Positive),
		ContractSize:           body.OptionalDecimal("contract_size", form.Positive).Or(decimal(1, 0)),
		InitMarginReq:          body.Decimal("init_margin_req", form.Positive),
		MaintMarginReq:         body.Decimal("maint_margin_req", form.Positive),
		MaxLeverage:            int(body.OptionalInteger("max_leverage", 1, market.MaxInstrumentLeverage).Value),
		FundingIntervalSeconds: int(body.OptionalInteger("funding_interval_seconds", 60, 86400).Or(3600)),
		PriceBand:              body.OptionalDecimal("price_band", form.Positive).Or(decimal(500, 2)),
		LimitBand:              body.OptionalDecimal("limit_band", form.Positive).Or(decimal(2000, 2)),
		MakerFee:               body.OptionalDecimal("maker_fee").Or(decimal(2, 0)),
		TakerFee:               body.OptionalDecimal("taker_fee").Or(decimal(5, 0)),
		IndexStaleSeconds:      int(body.OptionalInteger("index_stale_seconds", 0, 7*86400).Value),
		Tiers:                  marginTiers(body),
	}
	i.MinAmount = body.OptionalDecimal("min_amount", form.Positive).Or(i.AmountStep)
	if base := body.OptionalString("base_currency"); base.Set && base.Value != i.Underlying {
		body.Fault("base_currency", validation.InvalidValue, "base_currency must be the underlying")
	}
	body.OptionalTime("created") // accepted and ignored, so that a body returned by GET can be posted
	i = i.Normal()
	addErrors(body, i.Check())
	if !body.Faulty("init_margin_req") && !body.Faulty("margin_tiers") && !body.Faulty("margin_tiers", 0, "init_margin_req") {
		h.cfg.Venue.View(func(s decide.State, _ record.Position) {
			if e := s.(*venue.State).CheckLeverage(&i); e != nil {
				addErrors(body, []validation.FieldError{*e})
			}
		})
	}
	x, err := h.trading.Execute(rest.RequestOf(c), &venue.ListInstrument{Instrument: i}, body)
	if err != nil {
		return err
	}
	e, err := operation.Answer[*venue.InstrumentListed](x)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, wire.NewOperatedInstrument(&e.Instrument, x.Entry.Record.Time))
}

// addErrors adds the errors of an instrument to the body's errors, at most one per field.
func addErrors(body *input.Form, errs []validation.FieldError) {
	for _, e := range errs {
		if e.Path.Within(validation.At("margin_tiers", 0)) && !body.Has("margin_tiers") {
			e.Path = e.Path[2:]
		}
		field := e.Path.String()
		if field == "min_amount" && !body.Has(field) && body.Faulty("amount_step") || body.Faulty(e.Path...) {
			continue // it follows from an error that is already listed
		}
		e.Message = field + " " + e.Message
		body.Add(e)
	}
}

func statuses() []string {
	return []string{string(market.Open), string(market.PostOnly), string(market.CancelOnly), string(market.TradeHalt)}
}

func marginTiers(f *input.Form) []market.Tier {
	var out []market.Tier
	f.OptionalObjects("margin_tiers", 1, maxTiers, func(_ int, item *input.Form) {
		out = append(out, market.Tier{NotionalFrom: item.Notional("notional_from"), InitMarginReq: item.Decimal("init_margin_req", form.Positive),
			MaintMarginReq: item.Decimal("maint_margin_req", form.Positive), MaxLeverage: int(item.OptionalInteger("max_leverage", 1, market.MaxInstrumentLeverage).Value)})
	})
	return out
}

func (h *Handler) changeInstrument(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &venue.ChangeInstrument{
		Symbol:                 rest.Param(c, "symbol"),
		MinAmount:              body.OptionalDecimal("min_amount", form.Positive).Pointer(),
		MaxAmount:              body.OptionalDecimal("max_amount", form.Positive).Pointer(),
		InitMarginReq:          body.OptionalDecimal("init_margin_req", form.Positive).Pointer(),
		MaintMarginReq:         body.OptionalDecimal("maint_margin_req", form.Positive).Pointer(),
		MaxLeverage:            integer(body.OptionalInteger("max_leverage", 1, market.MaxInstrumentLeverage)),
		FundingIntervalSeconds: integer(body.OptionalInteger("funding_interval_seconds", 60, 86400)),
		PriceBand:              body.OptionalDecimal("price_band", form.Positive).Pointer(),
		LimitBand:              body.OptionalDecimal("limit_band", form.Positive).Pointer(),
		MakerFee:               body.OptionalDecimal("maker_fee").Pointer(),
		TakerFee:               body.OptionalDecimal("taker_fee").Pointer(),
		IndexStaleSeconds:      integer(body.OptionalInteger("index_stale_seconds", 0, 7*86400)),
		Tiers:                  marginTiers(body),
	}
	if status := body.OptionalEnum("status", statuses()...); status.Set {
		s := market.Status(status.Value)
		payload.Status = &s
	}
	fields := []string{"status", "min_amount", "max_amount", "init_margin_req", "maint_margin_req", "max_leverage",
		"funding_interval_seconds", "price_band", "limit_band", "maker_fee", "taker_fee", "index_stale_seconds", "margin_tiers"}
	if !slices.ContainsFunc(fields, body.Has) {
		body.Fault("", validation.Required, "at least one field is required")
	}
	if err := h.postedBack(c, body, payload); err != nil {
		return err
	}
	x, err := h.trading.Execute(rest.RequestOf(c), payload, body)
	if err != nil {
		return err
	}
	e, err := operation.Answer[*venue.InstrumentChanged](x)
	if err != nil {
		return err
	}
	listed, err := h.listed(c, e.Symbol, x.Entry.Record.Sequence)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewOperatedInstrument(&e.Instrument, listed))
}

// postedBack accepts a body that a GET of the instrument returned. A read-only member is allowed if it equals the
// current value. A tier that equals the current one after rounding to 2 decimals, as GET shows it, is not changed.
func (h *Handler) postedBack(c echo.Context, body *input.Form, payload *venue.ChangeInstrument) error {
	now, known, err := h.instrument(c, nil, payload.Symbol)
	if err != nil {
		return err
	}
	same := func(field string, given, same bool) {
		if given && known && !same { // the engine reports an unknown symbol
			body.Fault(field, validation.NotAllowed, field+" cannot be changed: it may be left out, or be as it is")
		}
	}
	shown := wire.NewOperatedInstrument(&now.Instrument, now.listed)
	for _, text := range []struct{ field, now string }{{"symbol", shown.Symbol}, {"underlying", shown.Underlying}, {"base_currency", shown.BaseCurrency},
		{"quote_currency", shown.QuoteCurrency}, {"settlement_currency", shown.SettlementCurrency}} {
		given := body.OptionalString(text.field)
		same(text.field, given.Set, given.Value == text.now)
	}
	for _, number := range []struct {
		field string
		now   fixed.Decimal
	}{{"price_tick", shown.PriceTick}, {"amount_step", shown.AmountStep}, {"contract_size", shown.ContractSize}} {
		given := body.OptionalDecimal(number.field, form.Positive)
		same(number.field, given.Set, given.Value.Cmp(number.now) == 0)
	}
	created := body.OptionalTime("created")
	same("created", created.Set, created.Value == shown.Created)
	for n, t := range payload.Tiers {
		if known && n < len(now.Tiers) && sameTier(t, shown.MarginTiers[n]) {
			payload.Tiers[n] = now.Tiers[n]
		}
	}
	return nil
}

func sameTier(t market.Tier, shown wire.Tier) bool {
	return t.NotionalFrom == shown.NotionalFrom && t.InitMarginReq.Cmp(shown.InitMarginReq) == 0 &&
		t.MaintMarginReq.Cmp(shown.MaintMarginReq) == 0 && t.MaxLeverage == shown.MaxLeverage
}

// listedInstrument is an instrument with the time at which it was listed.
type listedInstrument struct {
	market.Instrument
	listed scalar.Time
}

// instrument returns the state of an instrument, and whether it exists: now, or as of a past record if q is not nil.
func (h *Handler) instrument(c echo.Context, q *asof.Question, symbol string) (i listedInstrument, known bool, err error) {
	err = h.viewVenueThen(c, q, func(s *venue.State) {
		i.Instrument, known = s.Instrument(symbol)
		i.listed = s.Listed(symbol)
	})
	return i, known, err
}

// getInstrument returns an instrument with the status that the operator has set, now or as of a past record. A client may send the
// response back with PATCH.
func (h *Handler) getInstrument(c echo.Context) error {
	query := rest.Query(c)
	q := asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	symbol := rest.Param(c, "symbol")
	i, known, err := h.instrument(c, nil, symbol)
	switch {
	case err != nil:
		return err
	case !known:
		return problem.NotFound("UNKNOWN_SYMBOL", "There is no such instrument.")
	}
	if q != nil {
		i, known, err = h.instrument(c, q, symbol)
		switch {
		case err != nil:
			return err
		case !known:
			return asof.NotYet("The instrument was not listed yet.")
		}
	}
	return c.JSON(http.StatusOK, wire.NewOperatedInstrument(&i.Instrument, i.listed))
}

// listed returns the time of listing of an instrument that a record changed. It never changes, so every state since
// the listing has it. listed waits for this node's fold to reach sequence only if the fold does not contain the
// instrument yet.
func (h *Handler) listed(c echo.Context, symbol string, sequence int64) (at scalar.Time, err error) {
	look := func() {
		h.cfg.Venue.View(func(s decide.State, _ record.Position) { at = s.(*venue.State).Listed(symbol) })
	}
	if look(); at == 0 {
		if err := h.cfg.Venue.Wait(c.Request().Context(), sequence); err != nil {
			return 0, problem.SourceFailed(err)
		}
		look()
	}
	return at, nil
}

func integer(o input.Optional[int64]) *int {
	if !o.Set {
		return nil
	}
	n := int(o.Value)
	return &n
}

// withdrawal is the response to a delisting, after the instrument's last order was canceled.
type withdrawal struct {
	Symbol   string `json:"symbol"`
	Status   string `json:"status"`
	Canceled int    `json:"canceled"`
}

func (h *Handler) delistInstrument(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	payload := &venue.DelistInstrument{Symbol: rest.Param(c, "symbol")}
	e, err := rest.Execute[*venue.WorkFinished](c, h.trading, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, withdrawal{e.Symbol, string(market.Withdrawn), e.Canceled})
}

func (h *Handler) listInstruments(c echo.Context) error {
	query := rest.Query(c)
	page, q := rest.ReadNumbered(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	var all []wire.OperatedInstrument
	err := h.viewVenueThen(c, q, func(s *venue.State) {
		for _, i := range slices.Backward(s.Instruments()) {
			all = append(all, wire.NewOperatedInstrument(&i, s.Listed(i.Symbol)))
		}
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.Slice(page, all))
}

// indexPrice is the response to setting an index price: the prices now in force.
type indexPrice struct {
	Symbol     string             `json:"symbol"`
	IndexPrice fixed.Decimal      `json:"index_price"`
	MarkPrice  fixed.Decimal      `json:"mark_price"`
	Timestamp  scalar.Time        `json:"timestamp"`
	Position   record.LogPosition `json:"position"`
}

func (h *Handler) setIndexPrice(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &venue.SetIndexPrice{Symbol: rest.Param(c, "symbol"), Price: body.Decimal("price", form.Positive)}
	x, err := h.trading.Execute(rest.RequestOf(c), payload, body)
	if err != nil {
		return err
	}
	e, err := operation.Answer[*venue.IndexUpdated](x)
	if err != nil {
		return err
	}
	r := x.Entry.Record
	return c.JSON(http.StatusOK, indexPrice{e.Symbol, e.IndexPrice, e.MarkPrice, r.Time, record.LogPosition{Journal: tradingJournal, Sequence: r.Sequence}})
}
