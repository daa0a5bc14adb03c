package trading

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// Limit is a limit. Zero means no limit and is encoded as "none".
type Limit int64

// MarshalJSONTo writes the number, or "none" for zero.
func (l Limit) MarshalJSONTo(e *jsontext.Encoder) error {
	if l == 0 {
		return e.WriteToken(jsontext.String("none"))
	}
	return json.MarshalEncode(e, int64(l))
}

// limitsInForce lists the limits that apply to a client. The limits of an instrument are part of the instrument.
type limitsInForce struct {
	RateLimit rateLimit     `json:"rate_limit"` // the limit that the caller's requests count towards
	Requests  requestLimits `json:"requests"`
	Orders    orderLimits   `json:"orders"`
	Sockets   SocketLimits  `json:"sockets"`
}

type rateLimit struct {
	Policy    string `json:"policy"` // "user", "api_key", "network" or "none"
	PerSecond Limit  `json:"per_second"`
	Burst     Limit  `json:"burst"`
}

type requestLimits struct {
	BodyBytes        Limit `json:"body_bytes"`
	PageSize         Limit `json:"page_size"`
	CandlesPageSize  Limit `json:"candles_page_size"`
	CSVRows          Limit `json:"csv_rows"`
	OrderbookDepth   Limit `json:"orderbook_depth"`
	FilterCharacters Limit `json:"filter_characters"`
}

type orderLimits struct {
	Leverage              Limit `json:"leverage"`
	Live                  Limit `json:"live"`
	Batch                 Limit `json:"batch"`       // orders of a batch
	ReduceOnly            Limit `json:"reduce_only"` // per customer and instrument
	RememberedReferences  Limit `json:"remembered_reference_ids"`
	CancelAllAfterSeconds Limit `json:"cancel_all_after_seconds"`
}

// SocketLimits are the limits of each WebSocket connection. Zero means none.
type SocketLimits struct {
	MessageBytes      Limit `json:"message_bytes"`
	Subscriptions     Limit `json:"subscriptions"`
	RequestsPerSecond Limit `json:"requests_per_second"`
	RequestBurst      Limit `json:"request_burst"`
	QueuedMessages    Limit `json:"queued_messages"`
	QueuedBytes       Limit `json:"queued_bytes"`
	OrdersUnderWay    Limit `json:"orders_under_way"` // order entry requests in progress
	ResumeRecords     Limit `json:"resume_records"`
}

// getLimits returns the limits in force. The route is public. It includes the rate limit of the token or key of the request, or
// without one that of the client's network.
func (h *Handler) getLimits(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	if len(c.Request().Header[echo.HeaderAuthorization]) > 0 {
		if _, err := h.auth.Authenticate(c); err != nil {
			return err
		}
	}
	limit := rest.RateLimitOf(c)
	return c.JSON(http.StatusOK, limitsInForce{
		RateLimit: rateLimit{limit.Policy(), Limit(limit.PerSecond), Limit(limit.Burst)},
		Requests:  requestLimits{BodyBytes: input.MaxBody, PageSize: rest.MaxPageSize, CandlesPageSize: maxCandles, OrderbookDepth: maxDepth, FilterCharacters: maxFilter},
		Orders:    orderLimits{Leverage: domain.MaxLeverage, Batch: maxBatch, ReduceOnly: domain.MaxReduceOnly, RememberedReferences: domain.MaxReferences, CancelAllAfterSeconds: maxTimeout},
		Sockets:   h.sockets,
	})
}
