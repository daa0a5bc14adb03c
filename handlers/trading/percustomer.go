package trading

import (
	"iter"
	"net/http"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
)

// Positions and margins depend on prices, so they are read from the fold. The lists of a broker's accounts page by
// the order of registration of customers and the order of listing of instruments.

func (h *Handler) listPositions(c echo.Context) error {
	query := rest.Query(c)
	symbol := symbolFilter(query)
	asOf := asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	if asOf != nil {
		return h.positionsAsOf(c, asOf, of.customer, symbol)
	}
	return show(c, h, nil, func(s *domain.State) ([]wire.Position, error) {
		out := []wire.Position{}
		for _, p := range s.Positions(of.customer) {
			if symbol == "" || symbol == p.Symbol {
				out = append(out, wire.NewPosition(&p))
			}
		}
		return out, nil
	})
}

// listAllPositions lists the open positions of all customers that the principal may see, or of one customer.
func (h *Handler) listAllPositions(c echo.Context) error {
	query := rest.Query(c)
	symbol := symbolFilter(query)
	p, q := rows.ReadPaging(query, true), asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	return showEach(h, c, q, of, p, func(s *domain.State, customer string, yield func(ordinal int64, p wire.Position)) {
		for _, p := range s.Positions(customer) {
			if symbol == "" || symbol == p.Symbol {
				yield(int64(s.ListingIndex(p.Symbol)), wire.NewPosition(&p))
			}
		}
	})
}

func (h *Handler) getAccountSummary(c echo.Context) error {
	return showCustomer(c, h, func(s *domain.State, customer string) ([]wire.AccountSummary, bool) {
		summary, known := s.Summary(customer)
		return []wire.AccountSummary{wire.NewAccountSummary(&summary)}, known
	})
}

// listAccountSummaries lists the accounts of all customers that the principal may see, or of one customer.
func (h *Handler) listAccountSummaries(c echo.Context) error {
	query := rest.Query(c)
	p, q := rows.ReadPaging(query, true), asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	return showEach(h, c, q, of, p, func(s *domain.State, customer string, yield func(ordinal int64, a wire.AccountSummary)) {
		if summary, ok := s.Summary(customer); ok {
			yield(0, wire.NewAccountSummary(&summary))
		}
	})
}

// showEach responds with a page of the customers' items, or as of a past record if q is not nil. each yields a customer's items
// with their ordinals in ascending order.
func showEach[T any](h *Handler, c echo.Context, q *asof.Question, of who, p projections.Page,
	each func(s *domain.State, customer string, yield func(int64, T))) error {
	var page projections.Paged[T]
	err := h.viewThen(c, q, func(s *domain.State, _ int64) error {
		if q != nil && of.customer != "" {
			if _, known := s.Customer(of.customer); !known {
				return unregistered(q)
			}
		}
		page = rows.Take(p, func(beyond *projections.Key, descending bool) iter.Seq2[projections.Key, T] {
			return walkCustomers(s, of, beyond, descending, each)
		})
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rows.Show(page, func(v *T) T { return *v }))
}

func walkCustomers[T any](s *domain.State, of who, beyond *projections.Key, descending bool,
	each func(*domain.State, string, func(int64, T))) iter.Seq2[projections.Key, T] {
	return func(yield func(projections.Key, T) bool) {
		customers := s.Registered(of.broker)
		if of.customer != "" {
			customers = 1
		}
		for index := range indexesBeyond(customers, beyond, descending) {
			customer := of.customer
			if customer == "" {
				customer = s.CustomerAt(of.broker, index).Code
			} else if c, known := s.Customer(customer); !known || !of.includes(c) {
				return // the token's account may not exist or may belong to another broker
			}
			var found []projections.Row[T]
			each(s, customer, func(ordinal int64, v T) {
				k := projections.Key{Sequence: int64(index), Ordinal: ordinal}
				if beyond == nil || !descending && k.Compare(*beyond) > 0 || descending && k.Compare(*beyond) < 0 {
					found = append(found, projections.Row[T]{Key: k, Value: v})
				}
			})
			for i := range found {
				if descending {
					i = len(found) - 1 - i
				}
				if !yield(found[i].Key, found[i].Value) {
					return
				}
			}
		}
	}
}

// indexesBeyond yields the indexes of customers, beginning with that of the key, because the key's customer may have
// more items.
func indexesBeyond(n int, beyond *projections.Key, descending bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		index, step := 0, 1
		if descending {
			index, step = n-1, -1
		}
		if beyond != nil {
			index = int(max(-1, min(beyond.Sequence, int64(n))))
			if descending {
				index = min(index, n-1)
			}
		}
		for ; index >= 0 && index < n; index += step {
			if !yield(index) {
				return
			}
		}
	}
}
