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

// The channels positions and margin show the current state of accounts. A subscription begins with a snapshot of each
// account and continues with the changes that records make. A change of the mark price alone, or of an instrument's margins, which
// may affect very many accounts, is sent at most once per second, and so is one of a liquidation price alone (conflation.go).

const snapshot = "snapshot"

// positionMessage is a position on the positions channel.
type positionMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"`
	wire.Position
	Sequence int64 `json:"sequence"` // of the record at which the position was read
}

// marginMessage is an account on the margin channel.
type marginMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"`
	wire.AccountSummary
}

// accountDrafts returns the messages for an account on a channel: its positions or its margin.
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

// positionDraft returns the message for a position. A closed position has the amount "0".
func positionDraft(kind string, p *trading.Position, broker string, sequence int64) draft {
	shown := wire.NewPosition(p)
	if shown.Amount.IsZero() {
		shown.Amount, shown.LiquidationPrice = fixed.Decimal{}, wire.Price{}
	}
	return draft{positionsNow, "", broker, p.CustomerCode, &positionMessage{positionsNow.name, kind, shown, sequence}}
}

// chunk is the maximum number of accounts processed while the fold is blocked.
const chunk = 256

// beginAccounts sends the initial snapshots of a new subscription. A small number is sent immediately. Otherwise they
// are sent in chunks as fast as the client reads, and an account gets no updates before its snapshot. The caller
// holds the fold's lock and the hub's.
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
		h.serving.Go(func() { h.showMore(sub) }) // Add is safe: the counter includes the session's handler
	}
}

// showAccounts sends a subscription its next accounts, in the order of their registration.
func (h *Hub) showAccounts(sub *subscription, s *trading.State) {
	broker := sub.key.name // "" means all brokers
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
	for _, d := range accountDrafts(sub.channel, snapshot, s, customer, broker, h.streams.last.Sequence) {
		h.sendTo(sub, &message{plain: encode(d.value), position: h.logPosition(h.streams.last.Sequence).String()})
	}
}

// showMore sends further chunks until the subscription has all its accounts, or ends the session if the client reads
// too slowly.
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

// has reports whether the subscription has received the customer's snapshot and therefore gets updates.
func (s *subscription) has(customer string) bool {
	_, shown := s.shown[customer]
	return shown || s.shown == nil
}

// publishAccounts sends the accounts that a record changed, each once. It runs under the fold's lock and the hub's.
func (h *Hub) publishAccounts(e record.Entry, s *trading.State) {
	if h.streams.index.count[marginNow]+h.streams.index.count[positionsNow] == 0 {
		return
	}
	t := touchedBy(e.Record.Events)
	at, changed := h.logPosition(e.Record.Sequence).String(), t.changedPositions(s)
	h.streams.conflation.sent = sentAccounts{e.Record.Sequence, t.accounts, changed}
	for _, p := range changed {
		if position, known := s.Position(p.customer, p.symbol); known {
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
	h.noteLiquidationPrices(&t, s)
}

// noteLiquidationPrices schedules positions with a new liquidation price. A new balance or position moves those of all other
// positions of the account.
func (h *Hub) noteLiquidationPrices(t *touched, s *trading.State) {
	for _, customer := range t.funds {
		of, known := s.Customer(customer)
		if !known || !h.anyReads(positionsNow, of) {
			continue
		}
		for symbol := range s.Held(customer) {
			h.streams.conflation.positions[held{customer, symbol}] = true
		}
	}
	for _, sent := range t.changedPositions(s) {
		delete(h.streams.conflation.positions, sent)
	}
}

// publishAccount is publish for a message about an account.
func (h *Hub) publishAccount(d *draft, position string) {
	h.publishTo(d, position, func(sub *subscription) bool { return sub.has(d.customer) })
}

// touched lists the accounts and positions that a record changes, in the order of the events.
type touched struct {
	accounts  []string
	positions []held   // with a new size or cost; they may be closed now
	margined  []held   // with a new margin rate; they may not be open
	profiles  []string // accounts with a new margin rate on every instrument
	funds     []string // accounts with a new balance or position, which moves all their liquidation prices
}

// held identifies a position.
type held struct{ customer, symbol string }

// changedPositions returns the positions that the record changed, each once. s is the state after the record.
func (t *touched) changedPositions(s *trading.State) []held {
	out := slices.Clone(t.positions)
	add := func(p held) {
		if s.Holds(p.customer, p.symbol) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, p := range t.margined {
		add(p)
	}
	for _, customer := range t.profiles {
		for symbol := range s.Held(customer) {
			add(held{customer, symbol})
		}
	}
	return out
}

func (t *touched) account(customer string) {
	if customer != "" && !slices.Contains(t.accounts, customer) {
		t.accounts = append(t.accounts, customer)
	}
}

func (t *touched) money(customer string) {
	if customer != "" && !slices.Contains(t.funds, customer) {
		t.funds = append(t.funds, customer)
	}
}

func (t *touched) position(customer, symbol string) {
	t.account(customer)
	t.money(customer)
	if p := (held{customer, symbol}); !slices.Contains(t.positions, p) {
		t.positions = append(t.positions, p)
	}
}

func (t *touched) margin(customer, symbol string) {
	t.account(customer)
	t.margined = append(t.margined, held{customer, symbol})
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
			_, owed := event.(*trading.FundingPosted) // the equity includes it since the funding was fixed
			for _, p := range posted.Postings() {
				if t.account(p.CustomerCode); !owed {
					t.money(p.CustomerCode)
				}
			}
		}
		switch event := event.(type) {
		case *trading.CustomerRegistered:
			t.account(event.CustomerCode)
		case *trading.LeverageSet:
			t.margin(event.CustomerCode, event.Symbol)
		case *trading.LeverageChanged:
			t.margin(event.CustomerCode, event.Symbol)
		case *trading.FeeProfileSet:
			t.account(event.CustomerCode)
		case *trading.MarginProfileSet:
			t.account(event.CustomerCode)
			t.profiles = append(t.profiles, event.CustomerCode)
		case *trading.WithdrawalRequested:
			t.account(event.CustomerCode)
		case *trading.WithdrawalCanceled:
			t.account(event.CustomerCode)
		}
	}
	return t
}
