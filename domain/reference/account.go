package reference

import "fmt"

// account is a customer's, or the insurance fund.
type account struct {
	code    string
	isFund  bool
	balance int64
	pending int64

	initial, maintenance rate
	positions            []*position // in the order of listing
	orders               map[string]*order
	deadMan              moment

	failing      place     // since when it has less equity than maintenance margin
	deleveraging *position // whose rest waits for the next record
}

// position is what an account has on an instrument.
type position struct {
	account    *account
	instrument *instrument
	size       int64 // steps, signed
	cost       int64
	leverage   int64 // 0 for none
	ownFees    bool
	maker      dec // basis points
	taker      dec
	began      int64 // steps: the size when the liquidation began
}

type withdrawal struct {
	account *account
	amount  int64
	status  string
}

func (a *Auditor) register(code string) {
	must(a.accounts[code] == nil && code != a.fund.code, "%s is registered twice", code)
	c := &account{code: code, initial: rate{1, 13}, maintenance: rate{1, 26}, orders: make(map[string]*order)}
	a.accounts[code] = c
	a.everybody = append(a.everybody, c)
}

// customer returns an account that has to be there.
func (a *Auditor) customer(code string) *account {
	if code == a.fund.code {
		return a.fund
	}
	c := a.accounts[code]
	must(c != nil, "there is no customer %s", code)
	return c
}

// on returns the account's position on an instrument.
func (c *account) on(i *instrument) *position {
	at := len(c.positions)
	for n, h := range c.positions {
		if h.instrument == i {
			return h
		}
		if h.instrument.place > i.place && n < at {
			at = n
		}
	}
	h := &position{account: c, instrument: i, ownFees: c.isFund}
	c.positions = append(c.positions[:at], append([]*position{h}, c.positions[at:]...)...)
	return h
}

// fees are the position's, in basis points × 10⁸.
func (h *position) fees() (maker, taker int64) {
	if h.ownFees {
		return h.maker.v, h.taker.v
	}
	return h.instrument.MakerFee.v, h.instrument.TakerFee.v
}

// least is the least initial margin rate.
func (h *position) least() rate {
	if h.leverage != 0 {
		return rate{1, h.leverage}
	}
	return h.account.initial
}

// holders are the open positions on an instrument, the fund's among them.
func (a *Auditor) holders(i *instrument) (out []*position) {
	for _, c := range append(a.everybody[:len(a.everybody):len(a.everybody)], a.fund) {
		for _, h := range c.positions {
			if h.instrument == i && h.size != 0 {
				out = append(out, h)
			}
		}
	}
	return out
}

// touch remembers that a record may have changed an account's equity or its need.
func (a *Auditor) touch(c *account) { a.r.touched[c] = true }

// standing is an account's state of margin, as if all were posted that it owes.
type standing struct {
	balance, unrealised, owed, initial, used, maintenance, fees int64
}

func (s standing) equity() int64    { return s.balance + s.owed + s.unrealised }
func (s standing) reserved() int64  { return s.initial + s.fees }
func (s standing) available() int64 { return s.equity() - s.reserved() }

// health is what liquidation is about.
func (a *Auditor) health(c *account) (equity, maintenance int64) {
	equity = c.balance
	for _, h := range c.positions {
		if h.size != 0 {
			worth := h.instrument.worth(h.instrument.mark, h.size)
			cost, owed := a.owes(h)
			equity += worth - cost + owed
			maintenance += h.instrument.margin(abs(worth), false, c.maintenance)
		}
	}
	return equity, maintenance
}

// standing computes the margin as of a time, at which orders past their time reserve nothing.
func (a *Auditor) standing(c *account, at moment) standing {
	s := standing{balance: c.balance}
	for _, h := range c.positions {
		i := h.instrument
		worth := i.worth(i.mark, h.size)
		if h.size != 0 {
			cost, owed := a.owes(h)
			s.unrealised += worth - cost
			s.owed += owed
			s.maintenance += i.margin(abs(worth), false, c.maintenance)
			s.used += i.margin(abs(worth), true, h.least())
		}
		var bids, asks int64
		for _, o := range c.orders {
			if o.instrument == i && o.resting && !o.ReduceOnly && !o.past(at) {
				if n := i.worth(o.price, o.remaining); o.buy {
					bids += n
				} else {
					asks += n
				}
			}
		}
		s.initial += i.margin(max(abs(worth+bids), abs(worth-asks)), true, h.least())
		_, taker := h.fees()
		s.fees += feeOf(bids+asks, taker)
	}
	return s
}

// Figures are a customer's account as the interface shows it, in 10⁻⁸.
type Figures struct {
	Balance, Equity, Unrealised, Used, OrderMargin, Maintenance, Available, Withdrawable int64
}

// Figures returns those of a customer after the last record. Orders past their time still reserve, as they do in the summary
// of an account that nobody came to.
func (a *Auditor) Figures(code string) (Figures, error) {
	c := a.accounts[code]
	if c == nil {
		return Figures{}, fmt.Errorf("no event registered the customer %s", code)
	}
	s := a.standing(c, 0)
	available := s.available() - c.pending
	settlements := int64(0)
	for _, h := range c.positions {
		settlements += a.unsettled(h)
	}
	return Figures{Balance: c.balance, Equity: s.equity(), Unrealised: s.unrealised + settlements, Used: s.used,
		OrderMargin: s.initial - s.used + s.fees, Maintenance: s.maintenance, Available: available,
		Withdrawable: max(0, min(s.balance+s.owed-c.pending, available))}, nil
}

// Customers returns the codes of all customers, in the order in which they were registered.
func (a *Auditor) Customers() (codes []string) {
	for _, c := range a.everybody {
		codes = append(codes, c.code)
	}
	return codes
}

// settings takes over fees, margins and leverages.
func (a *Auditor) settings(name string, e *accountShape) {
	c := a.customer(e.CustomerCode)
	switch name {
	case "fee_profile.set":
		h := c.on(a.instrument(e.Symbol))
		h.ownFees, h.maker, h.taker = true, e.MakerFee, e.TakerFee
	case "margin_profile.set":
		c.initial, c.maintenance = percent(e.InitialMargin), percent(e.MaintenanceMargin)
		if e.Leverage != 0 {
			c.initial, c.maintenance = rate{1, e.Leverage}, rate{1, 2 * e.Leverage}
		}
		a.touch(c)
	case "leverage.changed":
		before := a.standing(c, a.now)
		c.on(a.instrument(e.Symbol)).leverage = e.Leverage
		a.allowed(c, before, a.standing(c, a.now), "a leverage")
	default:
		before := a.standing(c, a.now)
		c.on(a.instrument(e.Symbol)).leverage = e.Leverage
		a.allowed(c, before, a.standing(c, a.now), "a leverage with an order")
	}
}

// allowed is the margin rule: what is available stays at or above zero, or what is reserved does not rise; only the second for
// an account whose liquidation waits.
func (a *Auditor) allowed(c *account, before, after standing, what string) {
	must(before.equity() >= before.maintenance && after.available()-c.pending >= 0 || after.reserved() <= before.reserved(), "%s of %s leaves %s, and what is reserved rises from %s to %s",
		what, c.code, text(after.available()-c.pending), text(before.reserved()), text(after.reserved()))
}

// judgement is an order that is judged by what its account had before it.
type judgement struct {
	account *account
	before  standing
	at      moment
	what    string
}

// judge remembers what an account has before an order trades or rests.
func (a *Auditor) judge(c *account, what string) {
	if a.r.judged == nil && !c.isFund {
		a.r.judged = &judgement{c, a.standing(c, a.now), a.now, what}
	}
}

// finishJudgement holds what became of the order against the margin rule, once it is done.
func (a *Auditor) finishJudgement() {
	j := a.r.judged
	switch {
	case a.task != nil && a.task.kind == "sweep":
		if j != nil && a.r.resumed == nil {
			a.task.judged = j
		}
		return
	case a.r.resumed != nil && a.r.resumed.judged != nil:
		j = a.r.resumed.judged
	}
	if j != nil {
		a.allowed(j.account, j.before, a.standing(j.account, j.at), j.what)
	}
}

func text(units int64) string {
	sign := ""
	if units < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s%d.%08d", sign, abs(units)/one, abs(units)%one)
}
