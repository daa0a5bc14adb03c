package trading

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/candles"
)

// These constants limit the candles of a page.
const (
	defaultCandles = 500
	maxCandles     = 5000
)

// quietFor is how long the candle of an ended interval stays open if the log has no later record: a record of that
// interval may not have reached the rows yet.
const quietFor = 5 * scalar.Second

// listCandles lists candles without gaps, oldest first.
//
// The time of the log decides which candle is open. If the rows contain every record that this node has read, the
// journal's clock also counts, so candles continue without new records.
func (h *Handler) listCandles(c echo.Context) error {
	query := rest.Query(c)
	f := candles.Filter{Symbol: rest.Param(c, "symbol"), Span: rows.ReadSpan(query, false),
		Price: candles.Price(query.OptionalEnum("price", string(candles.Trade), string(candles.Mark), string(candles.Index)).Or(string(candles.Trade))),
		Limit: int(query.OptionalInteger("page_size", 1, maxCandles).Or(defaultCandles))}
	f.Interval, _ = market.ParseInterval(query.Enum("interval", intervals()...))
	if err := query.Done(); err != nil {
		return err
	}
	err := h.viewAt(c, func(s *domain.State, sequence int64) error {
		f.Known = sequence
		if _, known := s.Instrument(f.Symbol); !known { // candles of a withdrawn instrument stay readable
			return unknownSymbol()
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.Clock = h.clock.Now() - quietFor
	var out *wire.Candles
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		out = wire.NewCandles(f.Limit)
		return candles.Each(ctx, db, f, func(k *candles.Candle) { addCandle(out, k) })
	})
	if err != nil {
		return err
	}
	return rest.AnswerWith(c, http.StatusOK, out)
}

func intervals() []string {
	names := []string{}
	for _, i := range market.Intervals() {
		names = append(names, i.String())
	}
	return names
}

// listedSymbol returns an error if the instrument does not exist or is withdrawn.
func listedSymbol(s *domain.State, symbol string) error {
	if i, known := s.Instrument(symbol); !known || i.Status == market.Withdrawn {
		return unknownSymbol()
	}
	return nil
}

func unknownSymbol() *problem.Problem {
	return problem.NotFound("UNKNOWN_SYMBOL", "There is no such instrument.")
}

// addCandle encodes a candle.
func addCandle(out *wire.Candles, k *candles.Candle) {
	shown := wire.Candle{Time: k.Start, Open: k.Open, High: k.High, Low: k.Low, Close: k.Close, Closed: k.Closed}
	if k.Volume != "" {
		shown.Traded = &wire.Traded{Volume: k.Volume, Turnover: k.Turnover, Trades: k.Trades}
	}
	out.Add(&shown)
}
