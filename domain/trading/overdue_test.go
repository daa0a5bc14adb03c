package trading

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestAPriceLooksAtOrdersPastTheirTimeAlone: what rests at a level is known without a look at its orders while something
// else than their times is due, and when some are past theirs it takes no more looks than there are such.
func TestAPriceLooksAtOrdersPastTheirTimeAlone(t *testing.T) {
	const orders, late = 2000, 7
	e := manyHolders(t, 3)
	i := e.state.listing[0]
	const price = 640_000
	for n := range int64(orders) {
		o := limitOrder("c0", order.Buy, price, 1)
		if n%(orders/late) == 0 && n/(orders/late) < late {
			o.TimeInForce, o.ExpireTime = order.GTD, start+3*scalar.Hour
		}
		e.do(decide.Command{Actor: trader("alpha"), Payload: o})
	}
	level := i.book.Best(book.Bid)
	for level.Price != price {
		level = level.Worse()
	}
	for _, tt := range []struct {
		at     scalar.Time
		amount int64
		looks  int // at most
	}{{start + scalar.Hour, orders, 0}, {start + 4*scalar.Hour, orders - late, late}} {
		e.at.Time = tt.at
		for e.state.Due(e.at.Time) == decide.Blocking {
			e.step()
		}
		if e.state.Due(e.at.Time) != decide.Alternate {
			t.Fatal("nothing that alternates with clients is due")
		}
		if amount, looked := e.state.standingAmount(i, book.Bid, level, e.at.Time); amount != tt.amount || looked > tt.looks {
			t.Errorf("at %s %d stand, after %d looks; want %d", tt.at, amount, looked, tt.amount)
		}
	}
	for e.state.Due(e.at.Time) != decide.Nothing {
		e.step()
	}
	if level.Amount != orders-late || level.Orders != orders-late {
		t.Errorf("%d in %d orders rest in the end", level.Amount, level.Orders)
	}
}
