package live

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The channels positions and margin show accounts as they are now. A subscription begins with a snapshot of each, and goes
// on with whatever a record changes of one. Where only the mark price moved, which may be of very many accounts, pace.go
// says so, and not more often than once a second.

const snapshot = "snapshot"

// positionMessage is a position on the channel positions.
type positionMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"`
	wire.Position
	Sequence int64 `json:"sequence"` // of the record that it is as of
}

// marginMessage is an account on the channel margin.
type marginMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"`
	wire.AccountSummary
}

// accountDrafts makes the messages of an account for a channel: what it has of positions, or its margin.
func accountDrafts(c *channel, kind string, s *trading.State, customer, broker string, sequence int64) (out []draft) {
	if c == marginNow {
		if summary, known := s.Summary(customer); known {
			out = append(out, draft{c, "", broker, customer, &marginMessage{c.name, kind, wire.NewAccountSummary(&summary)}})
		}
		return out
	}
	for _, p := range s.Positions(customer) {
		out = append(out, positionDraft(kind, &p, broker, sequence))
	}
	return out
}

// positionDraft shows a position; one that is closed has the amount "0".
func positionDraft(kind string, p *trading.Position, broker string, sequence int64) draft {
	shown := wire.NewPosition(p)
	if shown.Amount.IsZero() {
		shown.Amount, shown.LiquidationPrice = fixed.Decimal{}, wire.Price{}
	}
	return draft{positionsNow, "", broker, p.CustomerCode, &positionMessage{positionsNow.name, kind, shown, sequence}}
}

// chunk is how many accounts are looked at while no record is applied.
const chunk = 256

// beginAccounts sends a new subscription what there is of its accounts: at once if they are few. Otherwise a part at a
// time, as fast as the client reads, and until an account's turn has come nothing is sent of it. It is called under the
// fold's lock and the hub's.
func (h *Hub) beginAccounts(sub *subscription, s *trading.State) {
	if sub.key.scope == ofCustomer {
		if customer, known := s.Customer(sub.key.name); known {
			h.sendAccount(sub, s, customer.Code, customer.Broker)
		}
		return
	}
	sub.shown = make(map[string]struct{})
	h.showAccounts(sub, s)
	if sub.shown != nil {
		h.serving.Go(func() { h.showMore(sub) }) // the session's handler is counted, so the count is not zero
	}
}

// showAccounts sends a subscription its next accounts, in the order of their registration.
func (h *Hub) showAccounts(sub *subscription, s *trading.State) {
	broker := sub.key.name // "" is everybody
	end := min(sub.next+chunk, s.Registered(broker))
	for ; sub.next < end; sub.next++ {
		customer := s.CustomerAt(broker, sub.next)
		h.sendAccount(sub, s, customer.Code, customer.Broker)
		sub.shown[customer.Code] = struct{}{}
	}
	if end == s.Registered(broker) {
		sub.shown = nil
	}
}

func (h *Hub) sendAccount(sub *subscription, s *trading.State, customer, broker string) {
	for _, d := range accountDrafts(sub.channel, snapshot, s, customer, broker, h.last.Sequence) {
		h.sendTo(sub, &message{plain: encode(d.value), position: h.logPosition(h.last.Sequence).String()})
	}
}

// showMore goes on until the subscription has seen all its accounts, or its client reads too slowly.
func (h *Hub) showMore(sub *subscription) {
	for more := true; more; {
		if !sub.session.waitForRoom(h.limits.ResumeWait) {
			h.tooSlow(sub)
			return
		}
		h.follower.View(func(state decide.State, _ record.Position) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if more = h.holds(sub) && !sub.session.isEnded(); more {
				h.showAccounts(sub, state.(*trading.State))
				more = sub.shown != nil
			}
		})
	}
}

// has reports whether the subscription has seen the customer's account, so that it gets what changes.
func (s *subscription) has(customer string) bool {
	_, shown := s.shown[customer]
	return shown || s.shown == nil
}

// publishAccounts sends what a record changed of accounts, each once. It runs under the fold's lock and the hub's.
func (h *Hub) publishAccounts(e record.Entry, s *trading.State) {
	if h.index.count[marginNow]+h.index.count[positionsNow] == 0 {
		return
	}
	t := touchedBy(e.Record.Events)
	at := h.logPosition(e.Record.Sequence).String()
	for _, p := range t.positions {
		position, known := s.Position(p.customer, p.symbol)
		// A rejected order may have set the leverage. That alone does not create a position to report.
		if known && (e.Record.Outcome == decide.Accepted || !position.Amount.IsZero()) {
			broker, _ := s.CustomerBroker(p.customer)
			d := positionDraft(update, &position, broker, e.Record.Sequence)
			h.publishAccount(&d, at)
		}
	}
	for _, customer := range t.accounts {
		broker, _ := s.CustomerBroker(customer)
		for _, d := range accountDrafts(marginNow, update, s, customer, broker, e.Record.Sequence) {
			h.publishAccount(&d, at)
		}
	}
}

// publishAccount is publish for a message about an account.
func (h *Hub) publishAccount(d *draft, position string) {
	lists, any := h.index.of(d)
	if !any {
		return
	}
	h.metrics.encoded.Add(1)
	m := &message{plain: encode(d.value), position: position}
	for _, readers := range lists {
		for _, sub := range readers {
			if sub.has(d.customer) {
				h.sendTo(sub, m)
			}
		}
	}
}

// touched are the accounts and positions that a record changes, in the order in which it comes to them.
type touched struct {
	accounts  []string
	positions []held
}

// held names a position.
type held struct{ customer, symbol string }

func (t *touched) account(customer string) {
	if customer != "" && !slices.Contains(t.accounts, customer) {
		t.accounts = append(t.accounts, customer)
	}
}

func (t *touched) position(customer, symbol string) {
	t.account(customer)
	if p := (held{customer, symbol}); !slices.Contains(t.positions, p) {
		t.positions = append(t.positions, p)
	}
}

func touchedBy(events []decide.Event) (t touched) {
	for _, event := range events {
		if o, ok := event.(trading.OrderEvent); ok {
			t.account(o.After().CustomerCode)
		}
		if changed, ok := event.(trading.PositionEvent); ok {
			for _, p := range changed.PositionsAfter() {
				t.position(p.CustomerCode, p.Symbol)
			}
		}
		if posted, ok := event.(ledger.Posted); ok {
			for _, p := range posted.Postings() {
				t.account(p.CustomerCode)
			}
		}
		switch event := event.(type) {
		case *trading.CustomerRegistered:
			t.account(event.CustomerCode)
		case *trading.LeverageSet:
			t.position(event.CustomerCode, event.Symbol)
		case *trading.FeeProfileSet:
			t.account(event.CustomerCode)
		case *trading.MarginProfileSet:
			t.account(event.CustomerCode)
		case *trading.WithdrawalRequested:
			t.account(event.CustomerCode)
		case *trading.WithdrawalCanceled:
			t.account(event.CustomerCode)
		}
	}
	return t
}
