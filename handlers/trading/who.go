package trading

import (
	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// who says whose records a read is about: one customer's if it is named, else all of a broker's, or with no broker
// everybody's.
type who struct{ broker, customer string }

// customerCode is the name of the customer, in paths and in queries.
const customerCode = "customer_code"

// whose returns whose records a read is about: the customer's that the route or the query names, or all that the
// principal may see. It is called when everything else of the query was asked for, and returns its faults.
func (h *Handler) whose(c echo.Context, query *web.Form) (who, error) {
	w := who{customer: web.Param(c, customerCode)}
	if w.customer == "" {
		w.customer = query.OptionalString(customerCode, web.CustomerCode).Value
	}
	if err := query.Done(); err != nil {
		return w, err
	}
	p := web.PrincipalOf(c)
	if w.customer == "" {
		w.customer = p.Customer // the token's one account, which may not be registered yet
		if !p.SeesAll() || p.Customer != "" {
			w.broker = p.Broker
		}
		return w, nil
	}
	return w, h.view(c, func(s *domain.State) error { return sees(c, s, w.customer) })
}

// includes reports whether a customer is one of them.
func (w who) includes(customer domain.Customer) bool {
	return (w.broker == "" || w.broker == customer.Broker) && (w.customer == "" || w.customer == customer.Code)
}
