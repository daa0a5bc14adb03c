package trading

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestHostileEvents folds events that are well-formed and that nobody decided: about customers, orders and instruments
// that are there and that are not, with amounts that do not fit. What is impossible must be told as a broken invariant
// (a panic with a text of ours) or do no harm; never may it end in a nil pointer, a wrong index or an endless loop, in
// the fold or in what reads the state afterwards.
func TestHostileEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &hostile{drawn: drawn{t}, at: decide.Stamp{Journal: scalar.ID{1}, Time: start}, state: NewState()}
		h.state.TrackBook()
		list := btc()
		for _, symbol := range []string{"BTCUSDC_PERP", "ETHUSDC_PERP"} {
			list.Symbol = symbol
			h.evolve(&InstrumentListed{list.Normal()})
		}
		h.evolve(&CustomerRegistered{CustomerCode: "alice", Broker: "alpha", Created: start}, &CustomerRegistered{CustomerCode: "bob", Broker: "beta", Created: start})
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			events := []decide.Event{}
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				events = append(events, h.event())
			}
			if !h.evolve(events...) || !h.look() {
				return // a broken invariant was told: the owner's term and the followers end here
			}
		}
	})
}

type hostile struct {
	drawn
	at    decide.Stamp
	state *State
}

// evolve folds a record, and reports whether it did without telling of a broken invariant.
func (h *hostile) evolve(events ...decide.Event) bool {
	h.at.Sequence++
	h.at.Time += scalar.Time(rapid.Int64Range(0, 10_000_000).Draw(h.T, "pause"))
	return h.told(func() {
		h.state.Evolve(h.at, decide.Recorded{ID: scalar.ID{9}, Type: "hostile"}, decide.Accepted, events)
	})
}

// look reads and steps the state.
func (h *hostile) look() bool {
	return h.told(func() {
		h.state.dump(io.Discard)
		h.state.BookChanges()
		for _, customer := range []string{"alice", "bob", "nobody"} {
			h.state.Summary(customer)
			h.state.Positions(customer)
			h.state.OpenOrders(customer)
			h.state.MarginProfile(customer)
			h.state.FeeProfile(customer)
		}
		for range 3 {
			if h.state.Due(h.at.Time) == decide.Nothing {
				break
			}
			at := h.at
			at.Sequence++
			if d := h.state.Step(at, rapid.Bool().Draw(h.T, "single")); len(d.Events) > 0 {
				h.at = at
				h.state.Evolve(at, decide.Recorded{Type: "engine.step"}, d.Outcome, d.Events)
			}
		}
	})
}

// told runs f and reports whether it came to its end. A panic that is not one of ours fails the test.
func (h *hostile) told(f func()) (ok bool) {
	defer func() {
		p := recover()
		text, ours := p.(string)
		if p == nil {
			return
		}
		if fmt.Sprintf("%T", p) == "rapid.stopTest" || fmt.Sprintf("%T", p) == "rapid.invalidData" {
			panic(p)
		}
		for _, name := range []string{"trading: ", "book: ", "fixed: ", "market: ", "margin: "} {
			if ours && strings.HasPrefix(text, name) {
				return
			}
		}
		h.T.Fatalf("panic: %v", p)
	}()
	f()
	return true
}

// seldom is for what ends a story soon, so that most get long.
func (h *hostile) seldom() bool { return rapid.IntRange(0, 150).Draw(h.T, "seldom") == 77 }

func (h *hostile) customer() string {
	if h.seldom() {
		return "nobody"
	}
	return rapid.SampledFrom([]string{"alice", "bob"}).Draw(h.T, "customer")
}

func (h *hostile) symbol() string {
	if h.seldom() {
		return "NONE_PERP"
	}
	return rapid.SampledFrom([]string{"BTCUSDC_PERP", "ETHUSDC_PERP"}).Draw(h.T, "symbol")
}

func (h *hostile) code() scalar.ID { return scalar.ID{byte(rapid.IntRange(1, 12).Draw(h.T, "code"))} }

func (h *hostile) figure(scale uint8) fixed.Decimal {
	if h.seldom() {
		return h.decimal()
	}
	return fixed.Decimal{Coef: rapid.Int64Range(1, 20).Draw(h.T, "figure"), Scale: scale}
}

func (h *hostile) money() fixed.Money {
	if h.seldom() {
		return fixed.Money(h.int64())
	}
	return fixed.Money(rapid.Int64Range(-5, 5).Draw(h.T, "money")) * fixed.Unit
}

func (h *hostile) live() order.Order {
	o := order.Order{Code: h.code(), CustomerCode: h.customer(), Broker: "alpha", Symbol: h.symbol(), Type: order.Limit, LimitPrice: h.figure(1),
		Action: rapid.SampledFrom([]order.Action{order.Buy, order.Sell}).Draw(h.T, "action"), Amount: h.figure(3), TimeInForce: order.GTC,
		ReduceOnly: rapid.Bool().Draw(h.T, "reduce-only"), ReferenceID: h.text(), Status: order.Open, Created: start, Updated: start}
	if !h.seldom() { // an order stays what it is
		o.CustomerCode = []string{"alice", "bob"}[o.Code[0]%2]
		o.Symbol = []string{"BTCUSDC_PERP", "ETHUSDC_PERP"}[o.Code[0]/2%2]
		o.Action = []order.Action{order.Buy, order.Sell}[o.Code[0]/4%2]
	}
	if rapid.Bool().Draw(h.T, "gtd") {
		o.TimeInForce, o.ExpireTime = order.GTD, h.at.Time+scalar.Time(rapid.Int64Range(-5, 20_000_000).Draw(h.T, "expires"))
	}
	if rapid.Bool().Draw(h.T, "filled") {
		o.FilledAmount, o.FilledQuote = h.figure(3), h.money()
		if !h.seldom() {
			o.Amount.Coef, o.Amount.Scale = o.FilledAmount.Coef%1_000_000+7, 3
		}
	}
	if o.Code[0] > 6 {
		o.Type, o.LimitPrice, o.TriggerPrice = order.StopLoss, fixed.Decimal{}, h.figure(1)
		if o.Code[0] > 9 {
			o.Type, o.StopLossPrice, o.TakeProfitPrice = order.TakeProfitStopLoss, h.figure(1), h.figure(1)
		}
	}
	if h.seldom() {
		o.Type, o.LimitPrice, o.CashAmount = order.Market, fixed.Decimal{}, h.money()
	}
	return o
}

func (h *hostile) event() decide.Event {
	posting := func() ledger.Posting {
		p := ledger.Posting{Type: ledger.Trade, Currency: currency, Amount: h.money(), Balance: h.money(), Symbol: h.symbol()}
		if rapid.Bool().Draw(h.T, "of the venue") {
			p.Account = rapid.SampledFrom(ledger.Accounts()).Draw(h.T, "account")
		} else {
			p.CustomerCode = h.customer()
		}
		return p
	}
	transaction := ledger.Transaction{Code: h.code(), CustomerCode: h.customer(), Amount: h.money(), Balance: h.money(), ReferenceID: h.text(), Status: ledger.Pending}
	switch rapid.IntRange(0, 27).Draw(h.T, "event") {
	case 26:
		return &TriggerFired{OrderCode: h.code(), Symbol: h.symbol()}
	case 27:
		return &decide.DueSetAside{Entry: "trigger/" + h.code().String()}

	case 0:
		return &OrderFilled{h.final(order.Filled)}
	case 1:
		return &OrderCanceled{h.final(order.Canceled)}
	case 2:
		return &OrderExpired{h.final(order.Expired)}
	case 3:
		return &OrderRejected{Order: h.final(order.Rejected)}
	case 4:
		return &IndexUpdated{Symbol: h.symbol(), IndexPrice: h.figure(1), MarkPrice: h.figure(1)}
	case 5:
		return &DepositCompleted{transaction, []ledger.Posting{posting(), posting()}}
	case 6:
		return &WithdrawalRequested{transaction}
	case 7:
		if h.state.withdrawals[transaction.Code] != nil || h.seldom() {
			return &WithdrawalCompleted{transaction, []ledger.Posting{posting()}}
		}
	case 8:
		if h.state.withdrawals[transaction.Code] != nil || h.seldom() {
			return &WithdrawalCanceled{transaction}
		}
	case 9:
		return &FeeProfileSet{CustomerCode: h.customer(), Symbol: h.symbol(), MakerFee: h.figure(1), TakerFee: h.figure(1)}
	case 10:
		return &LeverageSet{CustomerCode: h.customer(), Symbol: h.symbol(), Leverage: rapid.IntRange(1, 13).Draw(h.T, "leverage")}
	case 20:
		return &LeverageChanged{CustomerCode: h.customer(), Symbol: h.symbol(), Leverage: rapid.IntRange(0, 13).Draw(h.T, "leverage")}
	case 11:
		e := &WorkStarted{Work: rapid.SampledFrom([]Work{WorkSweep, WorkMassCancel, WorkDelisting, WorkMassCancel}).Draw(h.T, "kind"), CommandID: h.id(),
			CustomerCode: h.customer(), Symbol: h.symbol(), OrderCode: h.code(), Bound: h.figure(1), PriceProtection: rapid.Bool().Draw(h.T, "protected")}
		if e.Work != WorkSweep || h.state.orders.Get(e.OrderCode) != nil || h.seldom() {
			return e
		}
	case 12:
		return &WorkFinished{Work: WorkSweep}
	case 13:
		return &CancelAllAfterSet{CustomerCode: h.customer(), TimeoutSeconds: 5, ExpiresAt: h.at.Time + scalar.Time(rapid.Int64Range(-5, 20_000_000).Draw(h.T, "expires"))}
	case 14:
		return &CancelAllAfterFired{CustomerCode: h.customer()}
	case 15:
		return &decide.DueSetAside{Entry: "expiry/" + h.code().String()}
	case 16:
		return &decide.DuePutBack{Entry: "expiry/" + h.code().String()}
	case 17:
		return &TradeExecuted{Code: h.code(), Symbol: h.symbol(), Price: h.figure(1), Amount: h.figure(3), Type: Trade,
			Positions: []PositionHeld{{h.customer(), "BTCUSDC_PERP", h.figure(3), h.money(), fixed.Decimal{}}}, Entries: []ledger.Posting{posting(), posting()}}
	case 18:
		if h.seldom() {
			return &CustomerRegistered{CustomerCode: rapid.SampledFrom([]string{"alice", "carol"}).Draw(h.T, "customer"), Created: start}
		}
	case 19:
		return &decide.DueSetAside{Entry: "mass_cancel/" + h.id().String()}
	}
	o := h.live()
	if o.FilledAmount.Sign() != 0 {
		o.Status = order.PartiallyFilled
	}
	e, out := blank(o.Status, rapid.Bool().Draw(h.T, "amended"))
	*out = o
	return e
}

func (h *hostile) final(status order.Status) order.Order {
	o := h.live()
	o.Status = status
	return o
}
