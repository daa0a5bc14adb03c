package trading

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	rows "github.com/perpetua-exchange/perpetua/projections/ledger"
)

// registerCustomer opens an account of the caller's broker. A token that is confined to one account cannot.
func (h *Handler) registerCustomer(c echo.Context) error {
	if err := wholeBroker(c); err != nil {
		return err
	}
	body := web.BodyOnly(c)
	payload := &domain.RegisterCustomer{
		CustomerCode: body.OptionalString("customer_code", web.CustomerCode).Value,
		Name:         body.OptionalString("name", web.MaxLength(64)).Value,
	}
	e, err := web.Execute[*domain.CustomerRegistered](c, h.journal, domain.CommandRegisterCustomer, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, Customer{e.CustomerCode, wire.NullIfZero(e.Name), e.Broker, e.Created})
}

// wholeBroker refuses tokens that are confined to one account.
func wholeBroker(c echo.Context) error {
	if web.PrincipalOf(c).Customer != "" {
		return web.Forbidden("The token is confined to one account.")
	}
	return nil
}

func (h *Handler) listCustomers(c echo.Context) error {
	query := web.Query(c)
	p := page(query, true)
	if err := query.Done(); err != nil {
		return err
	}
	principal := web.PrincipalOf(c)
	if principal.Customer != "" {
		return h.listOwnCustomer(c, principal, p.After != nil || p.Before != nil)
	}
	broker := principal.Broker
	if principal.SeesAll() {
		broker = ""
	}
	var out web.Records[Customer]
	err := h.readRows(c, func(ctx context.Context) (int64, error) {
		found, err := h.records.Customers(ctx, broker, p)
		out = shown(found, func(v *customers.Customer) Customer {
			return Customer{v.CustomerCode, wire.NullIfZero(v.Name), v.Broker, v.Created}
		})
		return found.AsOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// listOwnCustomer is the list of a token that is confined to one account: that account, if there is one, on the only
// page.
func (h *Handler) listOwnCustomer(c echo.Context, p *web.Principal, beyond bool) error {
	out := web.Records[Customer]{Records: []Customer{}}
	err := h.view(c, func(s *domain.State) error {
		if v, known := s.Customer(p.Customer); known && !beyond && p.Sees(v.Broker, v.Code) {
			out.Records = append(out.Records, Customer{v.Code, wire.NullIfZero(v.Name), v.Broker, v.Created})
			cursor := web.Cursor(projections.Key{}.String())
			out.Metadata.StartCursor, out.Metadata.EndCursor = &cursor, &cursor
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

func (h *Handler) listPositions(c echo.Context) error {
	query := web.Query(c)
	symbol := query.OptionalString("symbol", symbolRule)
	if err := query.Done(); err != nil {
		return err
	}
	out := []position{}
	err := h.viewCustomer(c, func(s *domain.State, customer string) error {
		for _, p := range s.Positions(customer) {
			if !symbol.Set || symbol.Value == p.Symbol {
				out = append(out, newPosition(&p))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

func (h *Handler) getAccountSummary(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	var out []accountSummary
	err := h.viewCustomer(c, func(s *domain.State, customer string) error {
		summary, ok := s.Summary(customer)
		if !ok {
			return unknownCustomer()
		}
		out = append(out, newAccountSummary(&summary))
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

func (h *Handler) getMarginProfile(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	var out marginProfile
	err := h.viewCustomer(c, func(s *domain.State, customer string) error {
		profile, ok := s.MarginProfile(customer)
		if !ok {
			return unknownCustomer()
		}
		out = newMarginProfile(&profile)
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

func (h *Handler) getFeeProfile(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	out := []wire.FeeProfileItem{}
	err := h.viewCustomer(c, func(s *domain.State, customer string) error {
		profile, ok := s.FeeProfile(customer)
		if !ok {
			return unknownCustomer()
		}
		for _, f := range profile {
			out = append(out, wire.FeeProfileItem{Symbol: f.Symbol, MakerFee: f.MakerFee.Trim(), TakerFee: f.TakerFee.Trim()})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// setFees sets a customer's fees on an instrument. What a customer pays is its broker's business, so a token that is
// confined to one account cannot.
func (h *Handler) setFees(c echo.Context) error {
	if err := wholeBroker(c); err != nil {
		return err
	}
	body := web.BodyOnly(c)
	payload := &domain.SetFeeProfile{CustomerCode: web.Param(c, "customer_code"), Symbol: web.Param(c, "symbol"),
		MakerFee: body.Fee("maker_fee", false), TakerFee: body.Fee("taker_fee", false)}
	e, err := web.Execute[*domain.FeeProfileSet](c, h.journal, domain.CommandSetFeeProfile, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewFeeProfileItem(e))
}

func (h *Handler) listTransactions(c echo.Context) error {
	query := web.Query(c)
	f := rows.Filter{
		Symbol:   query.OptionalString("symbol", symbolRule).Value,
		Currency: query.OptionalString("currency", web.Characters(16, "")).Value,
		Types:    transactionTypes(query),
		Span:     span(query, false),
	}
	p := page(query, false)
	if err := query.Done(); err != nil {
		return err
	}
	var out web.Records[wire.Transaction]
	err := h.read(c, func(ctx context.Context, customer string) (int64, error) {
		f.CustomerCode = customer
		found, err := h.records.Transactions(ctx, f, p)
		out = shown(found, wire.NewTransaction)
		return found.AsOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// transactionTypes reads the type filter: one or several, separated by pipes.
func transactionTypes(f *web.Form) []ledger.Type {
	text := f.OptionalString("type")
	if !text.Set {
		return nil
	}
	rule := web.OneOf(string(ledger.Deposit), string(ledger.Withdrawal), string(ledger.Transfer), string(ledger.Trade),
		string(ledger.TradeFee), string(ledger.FundingPayment), string(ledger.Settlement), string(ledger.Liquidation),
		string(ledger.LiquidationFee), string(ledger.AutoDeleveraging), string(ledger.InsuranceFund))
	var out []ledger.Type
	for _, name := range strings.Split(text.Value, "|") {
		if code, message := rule(name); code != "" {
			f.Fault("type", code, message)
			return nil
		}
		out = append(out, ledger.Type(name))
	}
	return out
}
