package trading

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
	"github.com/perpetua-exchange/perpetua/projections/trades"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// instrumentFilter selects instruments and tickers.
type instrumentFilter struct{ symbol, underlying, quoteCurrency filter }

func readInstrumentFilter(f *input.Form) instrumentFilter {
	return instrumentFilter{readFilter(f, "symbol"), readFilter(f, "underlying"), readFilter(f, "quote_currency")}
}

func (f instrumentFilter) match(i *market.Instrument) bool {
	return f.symbol.match(i.Symbol) && f.underlying.match(i.Underlying) && f.quoteCurrency.match(i.QuoteCurrency)
}

// instrumentsAge is the caching time of the list of instruments.
const instrumentsAge = 5 * time.Second

func (h *Handler) listInstruments(c echo.Context) error {
	query := rest.Query(c)
	filter := readInstrumentFilter(query)
	wanted := input.Several(query, "status", market.Open, market.PostOnly, market.CancelOnly, market.TradeHalt)
	q := asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	out := []wire.Instrument{}
	err := h.viewThen(c, q, func(s *domain.State, _ int64) error {
		for _, i := range s.Instruments() {
			status, _ := s.Status(i.Symbol)
			if filter.match(&i) && (wanted == nil || slices.Contains(wanted, status)) {
				out = append(out, wire.NewInstrument(&i, status, s.Listed(i.Symbol)))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return rest.CachedJSON(c, instrumentsAge, out)
}

// ticker describes the market of an instrument. Unknown values are null.
type ticker struct {
	Symbol          string         `json:"symbol"`
	Underlying      string         `json:"underlying"`
	QuoteCurrency   string         `json:"quote_currency"`
	LastPrice       wire.Price     `json:"last_price"`
	MarkPrice       wire.Price     `json:"mark_price"`
	IndexPrice      wire.Price     `json:"index_price"`
	BestBid         wire.Price     `json:"best_bid"`
	BestBidAmount   wire.Price     `json:"best_bid_amount"`
	BestAsk         wire.Price     `json:"best_ask"`
	BestAskAmount   wire.Price     `json:"best_ask_amount"`
	Open24h         wire.Price     `json:"open_24h"`
	High24h         wire.Price     `json:"high_24h"`
	Low24h          wire.Price     `json:"low_24h"`
	Change24h       *fixed.Decimal `json:"change_24h"`
	Volume24h       string         `json:"volume_24h"`
	Turnover24h     string         `json:"turnover_24h"`
	OpenInterest    fixed.Decimal  `json:"open_interest"`
	FundingRate     *fixed.Decimal `json:"funding_rate"`
	NextFundingTime *scalar.Time   `json:"next_funding_time"`
	Timestamp       scalar.Time    `json:"timestamp"`
}

func newTicker(s *domain.State, i *market.Instrument) ticker {
	bid, ask := s.BestBidAsk(i.Symbol)
	index, _ := s.IndexPrice(i.Symbol)
	t := ticker{
		Symbol: i.Symbol, Underlying: i.Underlying, QuoteCurrency: i.QuoteCurrency,
		LastPrice: wire.Price(s.LastPrice(i.Symbol)), MarkPrice: wire.Price(s.MarkPrice(i.Symbol)), IndexPrice: wire.Price(index),
		BestBid: wire.Price(bid.Price), BestBidAmount: wire.Price(bid.Amount), BestAsk: wire.Price(ask.Price), BestAskAmount: wire.Price(ask.Amount),
		Volume24h: fixed.Decimal{Scale: i.AmountStep.Scale}.String(), Turnover24h: "0",
		OpenInterest: s.OpenInterest(i.Symbol), Timestamp: s.Time(),
	}
	if estimate, next, ok := s.Funding(i.Symbol); ok {
		t.FundingRate, t.NextFundingTime = &estimate, &next
	}
	return t
}

// add adds the figures of the last 24 hours.
func (t *ticker) add(d *tickers.Figures) {
	t.Open24h, t.High24h, t.Low24h = wire.Price(d.Open), wire.Price(d.High), wire.Price(d.Low)
	t.Volume24h, t.Turnover24h = d.VolumeText(), d.Turnover.String()
	t.Change24h = change(d.Open, d.Close)
}

func (h *Handler) listTickers(c echo.Context) error {
	query := rest.Query(c)
	filter, q := readInstrumentFilter(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	out := []ticker{}
	err := h.viewTickersThen(c, q, func(s *domain.State, figures []tickers.Figures) {
		for _, i := range s.Instruments() {
			if !filter.match(&i) {
				continue
			}
			t := newTicker(s, &i)
			if f := tickers.Of(figures, i.Symbol); f != nil {
				t.add(f)
			}
			out = append(out, t)
		}
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// viewTickersThen is viewTickers, or as of a past record if q is not nil: the 24 hours end at the record's time.
func (h *Handler) viewTickersThen(c echo.Context, q *asof.Question, look func(s *domain.State, figures []tickers.Figures)) error {
	if q == nil {
		return h.viewTickers(c, look)
	}
	return h.viewThen(c, q, func(s *domain.State, sequence int64) error {
		var figures []tickers.Figures
		err := h.AsOf().Read(c.Request().Context(), sequence, func(ctx context.Context, db projections.DB, sequence int64) (err error) {
			figures, err = tickers.AsOf(ctx, db, sequence, s.Time())
			return err
		})
		if err == nil {
			look(s, figures)
		}
		return err
	})
}

// viewTickers calls look with the venue's state and the figures of the last 24 hours as of the same record.
//
// It reads the figures first, at the position of the rows. Then the fold, which is at that position or later, adds
// the trades that the rows did not contain. If the rows lag so far that the fold does not hold all these trades,
// viewTickers waits until the rows have reached the fold's position and reads them again.
func (h *Handler) viewTickers(c echo.Context, look func(s *domain.State, figures []tickers.Figures)) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), figuresLimit)
	defer cancel()
	for {
		since := tickers.DayBefore(h.clock.Now())
		figures, asOf, err := tickers.Since(ctx, h.rows.DB, since)
		if err == nil {
			err = h.venue.Wait(ctx, asOf)
		}
		if err != nil {
			return problem.SourceFailed(err)
		}
		var viewed int64
		brought := false
		err = h.viewAt(c, func(s *domain.State, sequence int64) error {
			viewed = sequence
			if figures, brought = h.recentTrades.Bring(figures, since, asOf, sequence); brought {
				look(s, figures)
			}
			return nil
		})
		if err != nil || brought {
			return err
		}
		if err := h.rows.Wait(ctx, viewed); err != nil {
			return problem.SourceFailed(err)
		}
		// The wait relies on the last position that was seen. After a crash, Postgres may have lost its last
		// transactions, and until that is detected the wait returns immediately. So pause here, because only time
		// helps.
		select {
		case <-ctx.Done():
			return problem.SourceFailed(ctx.Err())
		case <-time.After(rereadAfter):
		}
	}
}

// figuresLimit is how long tickers wait for rows that lag. rereadAfter is the interval of reading them again.
const (
	figuresLimit = 2 * time.Second
	rereadAfter  = 25 * time.Millisecond
)

// listMarketTrades lists the most recent trades. limit is an older name of page_size.
func (h *Handler) listMarketTrades(c echo.Context) error {
	query := rest.Query(c)
	f := trades.MarketFilter{Symbol: symbolFilter(query)}
	name := "page_size"
	if query.Has("limit") {
		name = "limit"
	}
	size := rows.PageSize(query, name)
	if query.Has("limit") && query.Has("page_size") {
		rows.PageSize(query, "page_size") // otherwise page_size would be reported as unknown
		query.Fault("limit", validation.InvalidValue, "limit is another name of page_size: only one of the two may be given")
	}
	if err := query.Done(); err != nil {
		return err
	}
	return rows.All(c, h.rows, func(ctx context.Context, db projections.DB) ([]trades.MarketTrade, int64, error) {
		return trades.MostRecent(ctx, db, f, size)
	}, wire.NewMarketTrade)
}

func (h *Handler) listMarketTradeHistory(c echo.Context) error {
	query := rest.Query(c)
	p, span := rows.ReadHistory(query)
	f := trades.MarketFilter{Symbol: symbolFilter(query), Span: span}
	if err := query.Done(); err != nil {
		return err
	}
	return rows.Page(c, h.rows, p, func(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[trades.MarketTrade], error) {
		return trades.MarketPage(ctx, db, f, p)
	}, wire.NewMarketTrade)
}

// These constants limit the price levels of each side.
const (
	defaultDepth = 100
	maxDepth     = 1000
)

func (h *Handler) getOrderbook(c echo.Context) error {
	query := rest.Query(c)
	depth := int(query.OptionalInteger("depth", 1, maxDepth).Or(defaultDepth))
	q := asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	symbol := rest.Param(c, "symbol")
	if q != nil && !h.knows(symbol) {
		return unknownSymbol()
	}
	var out wire.Orderbook
	err := h.viewThen(c, q, func(s *domain.State, sequence int64) error {
		if _, known := s.Instrument(symbol); !known {
			return unknownThen(q, unknownSymbol(), "The instrument was not listed yet.")
		}
		if err := listedSymbol(s, symbol); err != nil {
			return err
		}
		out = wire.NewOrderbook(s, symbol, depth, sequence, s.Time())
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// knows reports whether an instrument was ever listed.
func (h *Handler) knows(symbol string) (known bool) {
	h.venue.View(func(s decide.State, _ record.Position) { _, known = s.(*domain.State).Instrument(symbol) })
	return known
}

func (h *Handler) getTime(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]scalar.Time{"time": h.clock.Now()})
}
