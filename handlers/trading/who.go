package trading

import (
	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// who is the set of customers that a read covers: one customer if it is named, else all of a broker, or all of the
// venue if the broker is empty too.
type who struct{ broker, customer string }

// customerCode is the name of the customer parameter in paths and queries.
const customerCode = "customer_code"

// whose returns the customers that a read covers: the customer named in the route or the query, or every customer
// that the principal may see. It must be called after all other query parameters were read, and returns the query's errors.
func (h *Handler) whose(c echo.Context, query *input.Form) (who, error) {
	w := who{customer: rest.Param(c, customerCode)}
	if w.customer == "" {
		w.customer = query.OptionalString(customerCode, input.CustomerCode).Value
	}
	if err := query.Done(); err != nil {
		return w, err
	}
	p := rest.PrincipalOf(c)
	if w.customer == "" {
		w.customer = p.Customer // the token's account, which may not be registered yet
		if !p.SeesAll() || p.Customer != "" {
			w.broker = p.Broker
		}
		return w, nil
	}
	return w, h.view(c, func(s *domain.State) error { return sees(c, s, w.customer) })
}

// includes reports whether a customer is covered.
func (w who) includes(customer domain.Customer) bool {
	return (w.broker == "" || w.broker == customer.Broker) && (w.customer == "" || w.customer == customer.Code)
}
