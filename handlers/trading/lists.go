package trading

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// page reads the parameters of a list with cursors, which hold the place of a row.
func page(f *web.Form, ascendingByDefault bool) projections.Page {
	asked := f.Page(ascendingByDefault)
	return projections.Page{Size: asked.Size, Descending: !asked.Ascending,
		After: place(f, "after", asked.After), Before: place(f, "before", asked.Before)}
}

func place(f *web.Form, name, cursor string) *projections.Key {
	if cursor == "" {
		return nil
	}
	k, err := projections.ParseKey(cursor)
	if err != nil {
		f.Fault(name, web.InvalidValue, "the cursor is not one that this interface handed out")
		return nil
	}
	return &k
}

// span reads from and to, which may be required.
func span(f *web.Form, required bool) projections.Span {
	var s projections.Span
	if required {
		s = projections.Span{From: f.Time("from"), To: f.Time("to")}
	} else {
		s = projections.Span{From: f.OptionalTime("from").Value, To: f.OptionalTime("to").Value}
	}
	if s.From != 0 && s.To != 0 && s.To < s.From {
		f.Fault("to", web.OutOfRange, "to must not be before from")
	}
	return s
}

// shown is the answer to a list with cursors.
func shown[Row, Shown any](p projections.Paged[Row], show func(*Row) Shown) web.Records[Shown] {
	out := web.Records[Shown]{Records: make([]Shown, 0, len(p.Rows))}
	for i := range p.Rows {
		out.Records = append(out.Records, show(&p.Rows[i].Value))
	}
	out.Metadata.HasNext, out.Metadata.HasPrevious = p.HasNext, p.HasPrevious
	if start, ok := p.Start(); ok {
		end, _ := p.End()
		from, to := web.Cursor(start.String()), web.Cursor(end.String())
		out.Metadata.StartCursor, out.Metadata.EndCursor = &from, &to
	}
	return out
}

// statuses reads the status filter: one or several of those allowed, separated by pipes.
func statuses(f *web.Form, allowed ...order.Status) []order.Status {
	text := f.OptionalString("status")
	if !text.Set {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	rule := web.OneOf(names...)
	var out []order.Status
	for _, name := range strings.Split(text.Value, "|") {
		if code, message := rule(name); code != "" {
			f.Fault("status", code, message)
			return nil
		}
		out = append(out, order.Status(name))
	}
	return out
}

func showOrder(o *orders.Order) wire.Order { return wire.NewOrder(&o.Order) }

func (h *Handler) listCustomerOrders(c echo.Context) error {
	query := web.Query(c)
	f := orders.Filter{Symbol: query.OptionalString("symbol", symbolRule).Value,
		Statuses: statuses(query, order.Open, order.PartiallyFilled)}
	if err := query.Done(); err != nil {
		return err
	}
	f.CustomerCode = web.Param(c, "customer_code")
	return h.openOrders(c, f)
}

// listOrders lists the live orders of all customers that the principal sees, or of one of them.
func (h *Handler) listOrders(c echo.Context) error {
	query := web.Query(c)
	f := orders.Filter{Symbol: query.OptionalString("symbol", symbolRule).Value}
	f.CustomerCode = query.OptionalString("customer_code", web.CustomerCode).Value
	if err := query.Done(); err != nil {
		return err
	}
	p := web.PrincipalOf(c)
	if f.CustomerCode == "" {
		f.CustomerCode = p.Customer
		if !p.SeesAll() || p.Customer != "" {
			f.Broker = p.Broker
		}
	}
	return h.openOrders(c, f)
}

func (h *Handler) openOrders(c echo.Context, f orders.Filter) error {
	if f.CustomerCode != "" {
		if err := h.view(c, func(s *domain.State) error { return sees(c, s, f.CustomerCode) }); err != nil {
			return err
		}
	}
	var out wire.Orders
	err := h.readRows(c, func(ctx context.Context) (int64, error) {
		rows, asOf, err := h.records.OpenOrders(ctx, f)
		out = make(wire.Orders, 0, len(rows))
		for i := range rows {
			out = append(out, showOrder(&rows[i]))
		}
		return asOf, err
	})
	if err != nil {
		return err
	}
	return web.AnswerWith(c, http.StatusOK, out)
}

func (h *Handler) listOrderHistory(c echo.Context) error {
	query := web.Query(c)
	f := orders.Filter{Symbol: query.OptionalString("symbol", symbolRule).Value,
		Statuses: statuses(query, order.Open, order.PartiallyFilled, order.Filled, order.Canceled, order.Expired, order.Rejected)}
	p := page(query, false)
	if err := query.Done(); err != nil {
		return err
	}
	var out web.Records[wire.Order]
	err := h.read(c, func(ctx context.Context, customer string) (int64, error) {
		f.CustomerCode = customer
		rows, err := h.records.OrderHistory(ctx, f, p)
		out = shown(rows, showOrder)
		return rows.AsOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

func (h *Handler) getOrder(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	return h.oneOrder(c, func(ctx context.Context, s orders.Scope) (orders.Order, bool, int64, error) {
		code, err := orderCode(c)
		if err != nil {
			return orders.Order{}, false, -1, err
		}
		return h.records.OrderByCode(ctx, s, code)
	})
}

func (h *Handler) getOrderByReference(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	return h.oneOrder(c, func(ctx context.Context, s orders.Scope) (orders.Order, bool, int64, error) {
		return h.records.OrderByReference(ctx, s, web.Param(c, "reference_id"))
	})
}

func (h *Handler) oneOrder(c echo.Context, query func(context.Context, orders.Scope) (orders.Order, bool, int64, error)) error {
	var o orders.Order
	var found bool
	err := h.read(c, func(ctx context.Context, customer string) (asOf int64, err error) {
		o, found, asOf, err = query(ctx, orders.Scope{CustomerCode: customer})
		return asOf, err
	})
	switch {
	case err != nil:
		return err
	case !found:
		return unknownOrder()
	}
	return c.JSON(http.StatusOK, showOrder(&o))
}

func (h *Handler) listTrades(c echo.Context) error { return h.trades(c, false) }

func (h *Handler) listTradeHistory(c echo.Context) error { return h.trades(c, true) }

// trades lists a customer's trades: the newest first, or those of a span of time, the oldest first.
func (h *Handler) trades(c echo.Context, history bool) error {
	query := web.Query(c)
	f := trades.Filter{Symbol: query.OptionalString("symbol", symbolRule).Value, OrderCode: query.OptionalID("order_code").Value}
	if history {
		f.Span = span(query, true)
	}
	p := page(query, history)
	if err := query.Done(); err != nil {
		return err
	}
	var out web.Records[wire.Trade]
	err := h.read(c, func(ctx context.Context, customer string) (int64, error) {
		f.CustomerCode = customer
		rows, err := h.records.Trades(ctx, f, p)
		out = shown(rows, wire.NewTrade)
		return rows.AsOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
