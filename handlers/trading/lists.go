package trading

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	transactions "github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// symbolFilter reads an optional symbol. Symbols are in capitals; the filter ignores case.
func symbolFilter(query *input.Form) string {
	return strings.ToUpper(query.OptionalString("symbol", domain.Symbols.Rule).Value)
}

func showOrder(o *orders.Order) wire.Order { return wire.NewOrder(&o.Order, o.Sequence) }

// listOpenOrders lists the live orders of a customer or, if the route names none, of all customers that the principal
// may see.
func (h *Handler) listOpenOrders(c echo.Context) error {
	query := rest.Query(c)
	f := orders.Filter{Symbol: symbolFilter(query), Statuses: input.Several(query, "status", order.Open, order.PartiallyFilled)}
	asOf := asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	f.Scope = orders.Scope{Broker: of.broker, CustomerCode: of.customer}
	if asOf != nil {
		return h.openOrdersAsOf(c, asOf, f)
	}
	var out wire.Orders
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, asOf, err := orders.Open(ctx, db, f)
		out = make(wire.Orders, 0, len(found))
		for i := range found {
			out = append(out, showOrder(&found[i]))
		}
		return asOf, err
	})
	if err != nil {
		return err
	}
	return rest.AnswerWith(c, http.StatusOK, out)
}

func (h *Handler) listOrderHistory(c echo.Context) error {
	query := rest.Query(c)
	f := orders.Filter{Symbol: symbolFilter(query), Code: query.OptionalID("order_code").Value, Span: rows.ReadSpan(query, false),
		Statuses: input.Several(query, "status", order.Open, order.PartiallyFilled, order.Filled, order.Canceled, order.Expired, order.Rejected)}
	p := rows.ReadPaging(query, false)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	f.Scope = orders.Scope{Broker: of.broker, CustomerCode: of.customer}
	return rows.List(c, h.rows, p, func(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[orders.Order], error) {
		return orders.History(ctx, db, f, p)
	}, showOrder)
}

func (h *Handler) getOrder(c echo.Context) error {
	code, err := orderCode(rest.RequestOf(c))
	return h.showOrder(c, oneOrder{code: code}, err)
}

func (h *Handler) getOrderByReference(c echo.Context) error {
	return h.showOrder(c, oneOrder{reference: rest.Param(c, "reference_id")}, nil)
}

// showOrder responds with the named order. If the customer exists and is visible, it returns wrong, the error of the
// name, if any.
func (h *Handler) showOrder(c echo.Context, named oneOrder, wrong error) error {
	query := rest.Query(c)
	asOf := asof.Read(query)
	of, err := h.whose(c, query)
	if err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	if asOf != nil {
		return h.orderAsOf(c, asOf, named, orders.Scope{CustomerCode: of.customer})
	}
	var o orders.Order
	var found bool
	err = h.rows.Find(c, h.venue, func(ctx context.Context, db projections.DB) (_ bool, asOf int64, err error) {
		o, found, asOf, err = named.find(ctx, db, orders.Scope{CustomerCode: of.customer})
		return found, asOf, err
	})
	switch {
	case err != nil:
		return err
	case !found:
		return unknownOrder()
	}
	return c.JSON(http.StatusOK, showOrder(&o))
}

// listTrades lists trades, newest first.
func (h *Handler) listTrades(c echo.Context) error {
	query := rest.Query(c)
	f := tradeFilter(query)
	f.Span = rows.ReadSpan(query, false)
	return h.trades(c, query, f, rows.ReadPaging(query, false))
}

// listTradeHistory lists the trades of a time span, oldest first.
func (h *Handler) listTradeHistory(c echo.Context) error {
	query := rest.Query(c)
	f := tradeFilter(query)
	p, span := rows.ReadHistory(query)
	f.Span = span
	return h.trades(c, query, f, p)
}

func tradeFilter(query *input.Form) trades.Filter {
	return trades.Filter{Symbol: symbolFilter(query), OrderCode: query.OptionalID("order_code").Value,
		Types: input.Several(query, "type", domain.Trade, domain.Liquidation, domain.AutoDeleveraging)}
}

func (h *Handler) trades(c echo.Context, query *input.Form, f trades.Filter, p projections.Page) error {
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	f.Broker, f.CustomerCode = of.broker, of.customer
	return rows.List(c, h.rows, p, func(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[trades.Trade], error) {
		return trades.Page(ctx, db, f, p)
	}, wire.NewTrade)
}

// listTransactions lists the rows of ledgers, newest first.
func (h *Handler) listTransactions(c echo.Context) error {
	query := rest.Query(c)
	f := transactions.Filter{
		Symbol:    symbolFilter(query),
		OrderCode: query.OptionalID("order_code").Value,
		Currency:  strings.ToUpper(query.OptionalString("currency", form.Characters{Limit: 16, Extra: ""}.Rule).Value),
		Types: input.Several(query, "type", ledger.Deposit, ledger.Withdrawal, ledger.Transfer, ledger.Trade, ledger.TradeFee, ledger.FundingPayment,
			ledger.Settlement, ledger.Liquidation, ledger.LiquidationFee, ledger.AutoDeleveraging, ledger.InsuranceFund),
		Span: rows.ReadSpan(query, false),
	}
	p := rows.ReadPaging(query, false)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	f.Broker, f.CustomerCode = of.broker, of.customer
	return rows.List(c, h.rows, p, func(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[transactions.Transaction], error) {
		return transactions.Transactions(ctx, db, f, p)
	}, wire.NewTransaction)
}
