// Package trading serves the trading interface: order entry, order state, accounts and public market data.
//
// A write becomes one command for the trading journal. Its response is built only from the events of the record that
// answers the command (replies.go), so a repeated request gets the same bytes. Prices, margins and books are read
// from a follower of the journal, history from the read models. Every response states its position in the journal.
//
// A broker's token sees the customers of that broker, and a customer's token sees that customer. Everything else
// appears not to exist (404). The rules of the journal enforce this for writes; this package enforces it for reads.
//
// Start with handler.go, which lists the routes, and orders.go, which enters orders.
package trading

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/proofs"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/web/slots"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// journalName is the journal that receives the commands of this package.
const journalName = "trading"

// Config holds the dependencies of the interface.
type Config struct {
	Auth     *rest.Auth
	Journals submit.BatchSubmitter
	// Venue follows the trading journal under trading.Rules.
	Venue record.Follower
	// Rows are the read models of the trading journal.
	Rows rows.Source
	// Past finds what past records were decided on. It may be nil.
	Past past.Decisions
	// States finds whole past states. It may be nil.
	States *asof.States
	// Commands lists the read models that GET /v1/commands searches. Folds MUST have their journals.
	Commands []rows.Source
	// Folds lists the followers of the journals in GET /v1/status.
	Folds []Fold
	// Sockets holds the limits of WebSocket connections for GET /v1/limits.
	Sockets SocketLimits
	// Proofs proves liabilities to customers.
	Proofs LiabilityProofs
	// Version is the version of this build, for GET /v1/status.
	Version string
	// Receipts makes the receipts of the trading journal. It may be nil.
	Receipts proofs.Source
	// Roots knows the roots of the records of all journals, which reads as of a past record may name.
	Roots asof.Roots
	// Now is the wall clock of the node.
	Now func() time.Time
}

// Handler serves the routes under /v1, /orders, and the description of the REST interface.
type Handler struct {
	auth     *rest.Auth
	journal  operation.Journal
	batches  submit.BatchSubmitter
	venue    record.Follower
	rows     rows.Source
	past     pasts
	commands []rows.Source
	folds    []Fold
	sockets  SocketLimits
	proofs   proving
	version  string
	clock    *logclock.Clock            // of the trading journal
	clocks   map[string]*logclock.Clock // of the journals of commands
	receipts *proofs.Receipts

	description *description
	// recentTrades holds the trades that the rows may not contain yet. The venue's lock guards it.
	recentTrades tickers.Recent
}

// New returns the handler of the trading interface. It registers a listener with the venue, so it must be called
// before the follower runs.
func New(c Config) *Handler {
	h := &Handler{auth: c.Auth, journal: operation.Journal{To: c.Journals, Name: journalName}, batches: c.Journals, venue: c.Venue, rows: c.Rows,
		past:     pasts{c.Past, c.States, c.Roots},
		commands: c.Commands, folds: c.Folds, sockets: c.Sockets, proofs: proving{c.Proofs, slots.New(maxProofs, maxProofsOfBroker)}, version: c.Version,
		receipts: proofs.New(c.Receipts), description: newDescription()}
	h.clock = logclock.Of(h.venue, c.Now)
	h.clocks = map[string]*logclock.Clock{journalName: h.clock}
	for _, f := range c.Folds {
		if h.clocks[f.Journal] == nil {
			h.clocks[f.Journal] = logclock.Of(f.Follower, c.Now)
		}
	}
	h.venue.Listen(h.recentTrades.Observe)
	return h
}

// Routes lists all routes of the interface.
func (h *Handler) Routes() []rest.Route {
	const customer = "/v1/customers/:customer_code"
	return []rest.Route{
		rest.Get("/v1/customers", h.listCustomers, access.ScopeRead),
		rest.Post("/v1/customers", h.registerCustomer, access.ScopeTrade),

		rest.Get(customer+"/orders", h.listOpenOrders, access.ScopeRead),
		rest.OperationRoute(http.MethodPost, customer+"/orders", h.placeOrder, access.ScopeTrade),
		rest.OperationRoute(http.MethodDelete, customer+"/orders", h.cancelOrders, access.ScopeTrade),
		rest.OperationRoute(http.MethodPost, customer+"/orders/batch", h.placeOrders, access.ScopeTrade),
		rest.OperationRoute(http.MethodPatch, customer+"/orders/batch", h.amendSeveral, access.ScopeTrade),
		rest.OperationRoute(http.MethodDelete, customer+"/orders/batch", h.cancelSeveral, access.ScopeTrade),
		rest.Get(customer+"/orders/history", h.listOrderHistory, access.ScopeRead),
		rest.Get(customer+"/orders/by-reference/:reference_id", h.getOrderByReference, access.ScopeRead),
		rest.OperationRoute(http.MethodPatch, customer+"/orders/by-reference/:reference_id", h.amendOrderByReference, access.ScopeTrade),
		rest.OperationRoute(http.MethodDelete, customer+"/orders/by-reference/:reference_id", h.cancelOrderByReference, access.ScopeTrade),
		rest.Get(customer+"/orders/:order_code", h.getOrder, access.ScopeRead),
		rest.Get(customer+"/orders/:order_code/explain", h.explainOrder, access.ScopeRead),
		rest.Get(customer+"/records/:sequence/explain", h.explainRecord, access.ScopeRead),
		rest.OperationRoute(http.MethodPatch, customer+"/orders/:order_code", h.amendOrder, access.ScopeTrade),
		rest.OperationRoute(http.MethodDelete, customer+"/orders/:order_code", h.cancelOrder, access.ScopeTrade),
		rest.Get(customer+"/orders/:order_code/receipt", h.orderReceipt, access.ScopeRead),
		rest.Get(customer+"/trades/:trade_code/receipt", h.tradeReceipt, access.ScopeRead),
		rest.Get(customer+"/transactions/:transaction_code/receipt", h.transactionReceipt, access.ScopeRead),
		rest.Post(customer+"/cancel-all-after", h.setCancelAllAfter, access.ScopeTrade),
		rest.Get("/v1/orders", h.listOpenOrders, access.ScopeRead),
		rest.Get("/orders", h.listOpenOrders, access.ScopeRead),

		rest.Get("/v1/trades", h.listTrades, access.ScopeRead),
		rest.Get("/v1/positions", h.listAllPositions, access.ScopeRead),
		rest.Get("/v1/account-summaries", h.listAccountSummaries, access.ScopeRead),
		rest.Get("/v1/transactions", h.listTransactions, access.ScopeRead),
		rest.Get(customer+"/trades", h.listTrades, access.ScopeRead),
		rest.Get(customer+"/trades/history", h.listTradeHistory, access.ScopeRead),
		rest.Get(customer+"/positions", h.listPositions, access.ScopeRead),
		rest.Get(customer+"/balances", h.listBalances, access.ScopeRead),
		rest.Get(customer+"/account-summary", h.getAccountSummary, access.ScopeRead),
		rest.Get(customer+"/margin-profile", h.getMarginProfile, access.ScopeRead),
		rest.Put(customer+"/margin-profile/:symbol", h.setLeverage, access.ScopeTrade),
		rest.Delete(customer+"/margin-profile/:symbol", h.clearLeverage, access.ScopeTrade),
		rest.Get(customer+"/state", h.getState, access.ScopeRead),
		rest.Get(customer+"/transactions", h.listTransactions, access.ScopeRead),
		rest.Get(customer+"/liability-proof", h.getLiabilityProof, access.ScopeRead),
		rest.Get(customer+"/fee-profile", h.getFeeProfile, access.ScopeRead),
		rest.Put(customer+"/fee-profile/:symbol", h.setFees, access.ScopeTrade),

		rest.Get("/v1/commands/:command_id", h.getCommand, access.ScopeRead),

		rest.Get("/v1/instruments", h.listInstruments),
		rest.Get("/v1/tickers", h.listTickers),
		rest.Get("/v1/market-trades", h.listMarketTrades),
		rest.Get("/v1/market-trades/history", h.listMarketTradeHistory),
		rest.Get("/v1/funding-rates", h.listFundingRates),
		rest.Get("/v1/liabilities", h.listLiabilities),
		rest.Get("/v1/liabilities/:position", h.getLiabilities),
		rest.Get("/v1/orderbook/:symbol", h.getOrderbook),
		rest.Get("/v1/candles/:symbol", h.listCandles),
		rest.Get("/v1/time", h.getTime),
		rest.Get("/v1/status", h.getStatus),
		rest.Get("/v1/limits", h.getLimits),

		rest.Get("/openapi.yaml", h.description.yaml),
		rest.Get("/openapi.json", h.description.json),
	}
}

// Register adds the routes and registers the operations for calls.
func (h *Handler) Register(s *rest.Server) {
	routes := h.Routes()
	h.auth.Register(s.Echo, routes)
	s.RegisterOperations(h.auth, routes)
}

// view calls look with the venue's state when it has reached the position that the client requires, and sets the
// response's position. It returns look's error.
func (h *Handler) view(c echo.Context, look func(s *domain.State) error) error {
	return h.viewAt(c, func(s *domain.State, _ int64) error { return look(s) })
}

// viewAt is view for a response that contains the sequence of the state.
func (h *Handler) viewAt(c echo.Context, look func(s *domain.State, sequence int64) error) error {
	return rest.View(c, journalName, h.venue, look)
}

// show responds with the result of read, which gets the venue's state, or as of a past record if q is not nil.
func show[T any](c echo.Context, h *Handler, q *asof.Question, read func(s *domain.State) (T, error)) error {
	var out T
	err := h.viewThen(c, q, func(s *domain.State, _ int64) (err error) {
		out, err = read(s)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// showCustomer is show for the customer that the route names. read reports whether the customer is known.
func showCustomer[T any](c echo.Context, h *Handler, read func(s *domain.State, customer string) (out T, known bool)) error {
	query := rest.Query(c)
	q := asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	return show(c, h, q, func(s *domain.State) (out T, err error) {
		out, known := read(s, of.customer)
		if !known {
			return out, unregistered(q)
		}
		return out, nil
	})
}

// sees returns the error for an unknown customer if the principal may not see the customer.
func sees(c echo.Context, s *domain.State, customer string) error {
	broker, known := s.CustomerBroker(customer)
	if !known || !rest.PrincipalOf(c).Sees(broker, customer) {
		return unknownCustomer()
	}
	return nil
}

func unknownCustomer() *problem.Problem {
	return problem.NotFound("UNKNOWN_CUSTOMER", "There is no such customer.")
}

func unknownOrder() *problem.Problem {
	return problem.NotFound("UNKNOWN_ORDER", "There is no such order.")
}
