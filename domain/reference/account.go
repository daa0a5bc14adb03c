package reference

import "fmt"

// account is the account of a customer or of the insurance fund. Amounts of money are in 10⁻⁸ USDC.
type account struct {
	code    string
	isFund  bool
	balance int64
	pending int64

	initial, maintenance rate
	positions            []*position // in the order in which their instruments were listed
	orders               map[string]*order
	deadMan              moment

	failing      duePosition // since when the equity is below the maintenance margin
	deleveraging *position   // the position of an unfinished deleveraging, which the next record continues
}

// position is an account's position on an instrument.
type position struct {
	account    *account
	instrument *instrument
	size       int64 // in steps; negative for a short position
	cost       int64
	leverage   int64 // 0 for none
	ownFees    bool
	maker      dec // in basis points
	taker      dec
	began      int64 // in steps: the size when the liquidation began
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

// customer returns the account with the code. The audit fails if there is none.
func (a *Auditor) customer(code string) *account {
	if code == a.fund.code {
		return a.fund
	}
	c := a.accounts[code]
	must(c != nil, "there is no customer %s", code)
	return c
}

// on returns the account's position on an instrument. It adds an empty one if there is none.
func (c *account) on(i *instrument) *position {
	at := len(c.positions)
	for n, h := range c.positions {
		if h.instrument == i {
			return h
		}
		if h.instrument.index > i.index && n < at {
			at = n
		}
	}
	h := &position{account: c, instrument: i, ownFees: c.isFund}
	c.positions = append(c.positions[:at], append([]*position{h}, c.positions[at:]...)...)
	return h
}

// fees returns the position's fees in basis points × 10⁸.
func (h *position) fees() (maker, taker int64) {
	if h.ownFees {
		return h.maker.v, h.taker.v
	}
	return h.instrument.MakerFee.v, h.instrument.TakerFee.v
}

// least returns the lowest initial margin rate of the position, which its leverage or its account sets.
func (h *position) least() rate {
	if h.leverage != 0 {
		return rate{1, h.leverage}
	}
	return h.account.initial
}

// holders returns the open positions on an instrument, including the fund's.
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

// touch marks an account for a margin check at the end of the record, since its equity or its requirement may have
// changed.
func (a *Auditor) touch(c *account) { a.r.touched[c] = true }

// standing is the margin state of an account as if everything that it owes were posted.
type standing struct {
	balance, unrealized, owed, initial, used, maintenance, fees int64
}

func (s standing) equity() int64    { return s.balance + s.owed + s.unrealized }
func (s standing) reserved() int64  { return s.initial + s.fees }
func (s standing) available() int64 { return s.equity() - s.reserved() }

// health returns the two values that decide about liquidation.
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

// standing computes the margin state at the given time. Expired orders reserve nothing, even if they are still in the
// book.
func (a *Auditor) standing(c *account, at moment) standing {
	s := standing{balance: c.balance}
	for _, h := range c.positions {
		i := h.instrument
		worth := i.worth(i.mark, h.size)
		if h.size != 0 {
			cost, owed := a.owes(h)
			s.unrealized += worth - cost
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

// Figures are the values of a customer's account that the interface shows, in 10⁻⁸ USDC.
type Figures struct {
	Balance, Equity, Unrealized, Used, OrderMargin, Maintenance, Available, Withdrawable int64
}

// Figures returns the values of a customer's account after the last record. Expired orders that are still in the book
// reserve margin, as in the interface's account summary.
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
	return Figures{Balance: c.balance, Equity: s.equity(), Unrealized: s.unrealized + settlements, Used: s.used,
		OrderMargin: s.initial - s.used + s.fees, Maintenance: s.maintenance, Available: available,
		Withdrawable: max(0, min(s.balance+s.owed-c.pending, available))}, nil
}

// Customers returns the codes of all customers in the order of registration.
func (a *Auditor) Customers() (codes []string) {
	for _, c := range a.everybody {
		codes = append(codes, c.code)
	}
	return codes
}

// settings applies a change of fees, margin rates or leverage.
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

// allowed checks the margin rule: either the available balance stays at or above zero and the account was not
// liquidatable before, or the reserved amount does not rise.
func (a *Auditor) allowed(c *account, before, after standing, what string) {
	must(before.equity() >= before.maintenance && after.available()-c.pending >= 0 || after.reserved() <= before.reserved(), "%s of %s leaves %s, and what is reserved rises from %s to %s",
		what, c.code, text(after.available()-c.pending), text(before.reserved()), text(after.reserved()))
}

// judgement is a pending margin check of an order, with the state of the account before the order.
type judgement struct {
	account *account
	before  standing
	at      moment
	what    string
}

// judge records the state of an account before an order trades or rests.
func (a *Auditor) judge(c *account, what string) {
	if a.r.judged == nil && !c.isFund {
		a.r.judged = &judgement{c, a.standing(c, a.now), a.now, what}
	}
}

// finishJudgement checks the margin rule after the order is done. For a sweep it waits until the last step.
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
