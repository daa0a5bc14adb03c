package trading

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/customers"
)

// registerCustomer opens an account of the caller's broker. Tokens limited to one account may not do that.
func (h *Handler) registerCustomer(c echo.Context) error {
	if err := wholeBroker(c); err != nil {
		return err
	}
	body := rest.BodyOnly(c)
	payload := &domain.RegisterCustomer{
		CustomerCode: body.OptionalString("customer_code", input.CustomerCode).Value,
		Name:         body.OptionalString("name", input.MaxLength(64)).Value,
	}
	e, err := rest.Execute[*domain.CustomerRegistered](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, Customer{e.CustomerCode, wire.NullIfZero(e.Name), e.Broker, e.Created})
}

// wholeBroker returns an error if the token is limited to one account.
func wholeBroker(c echo.Context) error {
	if rest.PrincipalOf(c).Customer != "" {
		return problem.Forbidden("The token is confined to one account.")
	}
	return nil
}

func (h *Handler) listCustomers(c echo.Context) error {
	query := rest.Query(c)
	p, q := rows.ReadPaging(query, true), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	principal := rest.PrincipalOf(c)
	if principal.Customer != "" {
		return h.listOwnCustomer(c, q, principal, p.After != nil || p.Before != nil)
	}
	broker := principal.Broker
	if principal.SeesAll() {
		broker = ""
	}
	if q != nil {
		return h.customersAsOf(c, q, broker, p)
	}
	return rows.Page(c, h.rows, p, func(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[customers.Customer], error) {
		return customers.Page(ctx, db, broker, p)
	}, showCustomerRow)
}

func showCustomerRow(v *customers.Customer) Customer {
	return Customer{v.CustomerCode, wire.NullIfZero(v.Name), v.Broker, v.Created}
}

// customersAsOf responds with the customers of a broker, or of all brokers for "", as of a past record.
func (h *Handler) customersAsOf(c echo.Context, q *asof.Question, broker string, p projections.Page) error {
	var found projections.Paged[customers.Customer]
	err := q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		found, err = customers.PageAsOf(ctx, db, broker, p, sequence)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rows.Show(found, showCustomerRow))
}

// listOwnCustomer lists the customers for a token limited to one account: that account, if it exists, on the only
// page.
func (h *Handler) listOwnCustomer(c echo.Context, q *asof.Question, p *access.Principal, beyond bool) error {
	var found projections.Paged[domain.Customer]
	err := h.viewThen(c, q, func(s *domain.State, _ int64) error {
		if v, known := s.Customer(p.Customer); known && !beyond && p.Sees(v.Broker, v.Code) {
			found.Rows = append(found.Rows, projections.Row[domain.Customer]{Value: v})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rows.Show(found, func(v *domain.Customer) Customer {
		return Customer{v.Code, wire.NullIfZero(v.Name), v.Broker, v.Created}
	}))
}

func (h *Handler) getMarginProfile(c echo.Context) error {
	return showCustomer(c, h, func(s *domain.State, customer string) (out marginProfile, known bool) {
		profile, known := s.MarginProfile(customer)
		if known {
			out = newMarginProfile(&profile)
		}
		return out, known
	})
}

// setLeverage overrides the initial margin on an instrument, like an order with a leverage.
func (h *Handler) setLeverage(c echo.Context) error {
	body := rest.BodyOnly(c)
	return h.override(c, body.Leverage("leverage", domain.MaxLeverage), body)
}

// clearLeverage removes an override.
func (h *Handler) clearLeverage(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	return h.override(c, 0)
}

func (h *Handler) override(c echo.Context, leverage int, forms ...*input.Form) error {
	payload := &domain.SetLeverage{CustomerCode: rest.Param(c, customerCode), Symbol: rest.Param(c, "symbol"), Leverage: leverage}
	e, err := rest.Execute[*domain.LeverageChanged](c, h.journal, payload, forms...)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newMarginProfile(&e.MarginProfile))
}

func (h *Handler) getFeeProfile(c echo.Context) error {
	return showCustomer(c, h, func(s *domain.State, customer string) ([]wire.FeeProfileItem, bool) {
		profile, known := s.FeeProfile(customer)
		out := []wire.FeeProfileItem{}
		for _, f := range profile {
			out = append(out, wire.FeeProfileItem{Symbol: f.Symbol, MakerFee: f.MakerFee.Trim(), TakerFee: f.TakerFee.Trim()})
		}
		return out, known
	})
}

// setFees sets a customer's fees on an instrument. The fees are the broker's decision, so tokens limited to one
// account may not set them.
func (h *Handler) setFees(c echo.Context) error {
	if err := wholeBroker(c); err != nil {
		return err
	}
	body := rest.BodyOnly(c)
	payload := &domain.SetFeeProfile{CustomerCode: rest.Param(c, "customer_code"), Symbol: rest.Param(c, "symbol"),
		MakerFee: body.Fee("maker_fee", false), TakerFee: body.Fee("taker_fee", false)}
	e, err := rest.Execute[*domain.FeeProfileSet](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewFeeProfileItem(e))
}
