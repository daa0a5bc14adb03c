// Package trading serves the trading interface: order entry and order state, accounts, and public market data.
//
// A write becomes one command for the trading journal. Its answer is rendered from the events of the record that
// answers it and from nothing else (replies.go), so that a repeated request is answered with the same bytes. What
// needs prices, margins or books is read from a follower of the journal; what needs history is read from the read
// models. Every answer says which position of the journal it is as of.
//
// A broker's token sees the customers of that broker, a customer's token that customer; whatever else is asked for
// does not exist (404). Writes are confined to them by the rules themselves, reads here.
package trading

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// journalName is the journal that the commands of this package go to.
const journalName = "trading"

// Follower is a fold of a journal. A *follow.Fold is one.
type Follower interface {
	web.Waiter
	View(look func(s decide.State, at journal.Position))
	// Err returns the error that ended the fold, or nil while it runs.
	Err() error
}

// Config is what the interface is made of.
type Config struct {
	Auth     *web.Auth
	Journals journal.Submitter
	// Venue follows the trading journal under trading.Rules.
	Venue Follower
	// Records are the read models.
	Records Records
	// Commands are the journals that GET /v1/commands looks into.
	Commands []CommandLog
	// Now is the wall clock, for /v1/time and the span of 24 hours of the tickers.
	Now func() time.Time
}

// Handler serves the routes under /v1, /orders, and the description of the REST interface.
type Handler struct {
	auth     *web.Auth
	journals journal.Submitter
	venue    Follower
	records  Records
	commands []CommandLog
	now      func() time.Time

	description *description
}

// New makes the handler of the trading interface.
func New(c Config) *Handler {
	return &Handler{auth: c.Auth, journals: c.Journals, venue: c.Venue, records: c.Records,
		commands: c.Commands, now: c.Now, description: newDescription()}
}

// Route is one route: who may use it, and what serves it.
type Route struct {
	Method string
	Path   string // parameters as :name
	// Scopes are those of which a token must have one. A route without any is public.
	Scopes  []string
	Handler echo.HandlerFunc
}

// Routes lists all routes of the interface.
func (h *Handler) Routes() []Route {
	get, post, put, patch, remove := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	read, trade := []string{web.ScopeRead}, []string{web.ScopeTrade}
	const customer = "/v1/customers/:customer_code"
	return []Route{
		{get, "/v1/customers", read, h.listCustomers},
		{post, "/v1/customers", trade, h.registerCustomer},

		{get, customer + "/orders", read, h.listCustomerOrders},
		{post, customer + "/orders", trade, h.placeOrder},
		{remove, customer + "/orders", trade, h.cancelOrders},
		{get, customer + "/orders/history", read, h.listOrderHistory},
		{get, customer + "/orders/by-reference/:reference_id", read, h.getOrderByReference},
		{get, customer + "/orders/:order_code", read, h.getOrder},
		{patch, customer + "/orders/:order_code", trade, h.amendOrder},
		{remove, customer + "/orders/:order_code", trade, h.cancelOrder},
		{post, customer + "/cancel-all-after", trade, h.setCancelAllAfter},
		{get, "/v1/orders", read, h.listOrders},
		{get, "/orders", read, h.listOrders},

		{get, customer + "/trades", read, h.listTrades},
		{get, customer + "/trades/history", read, h.listTradeHistory},
		{get, customer + "/positions", read, h.listPositions},
		{get, customer + "/account-summary", read, h.getAccountSummary},
		{get, customer + "/margin-profile", read, h.getMarginProfile},
		{get, customer + "/transactions", read, h.listTransactions},
		{get, customer + "/fee-profile", read, h.getFeeProfile},
		{put, customer + "/fee-profile/:symbol", trade, h.setFees},

		{get, "/v1/commands/:command_id", read, h.getCommand},

		{get, "/v1/instruments", nil, h.listInstruments},
		{get, "/v1/tickers", nil, h.listTickers},
		{get, "/v1/market-trades", nil, h.listMarketTrades},
		{get, "/v1/market-trades/history", nil, h.listMarketTradeHistory},
		{get, "/v1/orderbook/:symbol", nil, h.getOrderbook},
		{get, "/v1/time", nil, h.getTime},

		{get, "/openapi.yaml", nil, h.description.yaml},
		{get, "/openapi.json", nil, h.description.json},
	}
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) {
	for _, r := range h.Routes() {
		if len(r.Scopes) == 0 {
			e.Add(r.Method, r.Path, r.Handler)
			continue
		}
		e.Add(r.Method, r.Path, h.auth.Require(r.Scopes...)(r.Handler)) // once; Echo would do so for each request
	}
}

// view shows the venue's state, once it has reached the position that the client wants, and makes the answer say how
// far it is. What look finds wrong is returned.
func (h *Handler) view(c echo.Context, look func(s *domain.State) error) error {
	return h.viewAt(c, func(s *domain.State, _ int64) error { return look(s) })
}

// viewAt is view for an answer that names the sequence it is as of.
func (h *Handler) viewAt(c echo.Context, look func(s *domain.State, sequence int64) error) error {
	if err := web.Await(c, journalName, h.venue); err != nil {
		return err
	}
	if err := h.venue.Err(); err != nil {
		return unavailable(err)
	}
	var err error
	h.venue.View(func(s decide.State, at journal.Position) {
		web.SetReadPosition(c, journalName, at.Sequence)
		err = look(s.(*domain.State), at.Sequence)
	})
	return err
}

// viewCustomer is view for what belongs to the customer that the route names.
func (h *Handler) viewCustomer(c echo.Context, look func(s *domain.State, customer string) error) error {
	customer := web.Param(c, "customer_code")
	return h.view(c, func(s *domain.State) error {
		if err := sees(c, s, customer); err != nil {
			return err
		}
		return look(s, customer)
	})
}

// sees says that there is no such customer where the principal may not see it.
func sees(c echo.Context, s *domain.State, customer string) error {
	broker, known := s.CustomerBroker(customer)
	if !known || !web.PrincipalOf(c).Sees(broker, customer) {
		return unknownCustomer()
	}
	return nil
}

func unknownCustomer() *web.Problem {
	return web.NotFound("UNKNOWN_CUSTOMER", "There is no such customer.")
}

func unknownOrder() *web.Problem { return web.NotFound("UNKNOWN_ORDER", "There is no such order.") }

// read makes the read models' answer wait for the position that the client wants, looks that the customer of the
// route is the principal's, and reads. The answer says how far the rows are.
func (h *Handler) read(c echo.Context, query func(ctx context.Context, customer string) (asOf int64, err error)) error {
	return h.viewThenQuery(c, func(ctx context.Context) (int64, error) { return query(ctx, web.Param(c, "customer_code")) },
		func(s *domain.State) error { return sees(c, s, web.Param(c, "customer_code")) })
}

// viewThenQuery reads from the fold, then from the read models. Each stands at a position of its own, so the answer
// names the lower one.
func (h *Handler) viewThenQuery(c echo.Context, query func(context.Context) (int64, error), look func(*domain.State) error) error {
	var viewed int64
	err := h.viewAt(c, func(s *domain.State, sequence int64) error {
		viewed = sequence
		return look(s)
	})
	if err != nil {
		return err
	}
	if err := web.Await(c, journalName, h.records); err != nil {
		return err
	}
	asOf, err := query(c.Request().Context())
	if err != nil {
		return unavailable(err)
	}
	web.SetReadPosition(c, journalName, min(viewed, asOf))
	return nil
}

// unavailable is the answer where a source fails. Problems, and faults of the log, stay what they are.
func unavailable(err error) error {
	if p := web.ProblemOf(err); p.Code != "INTERNAL" {
		return err
	}
	return web.Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}
