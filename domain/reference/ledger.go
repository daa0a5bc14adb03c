package reference

import (
	"math/big"
	"regexp"
	"slices"
)

// movement is an expected posting to the account of a customer, of the fund, or of the venue.
type movement struct {
	account *account
	venue   string
	kind    string
	amount  int64
}

// post compares the postings of one event with the expected ones, in any order, and applies them. Expected postings of
// zero do not occur. The postings must sum to zero, and each posting's balance must be the sum of the postings to its
// account.
func (a *Auditor) post(postings []postingShape, want []movement) {
	left := make(map[movement]int)
	for _, m := range want {
		if m.amount != 0 {
			left[m]++
		}
	}
	sum := int64(0)
	for _, p := range postings {
		must(p.Currency == "USDC", "a posting in %s", p.Currency)
		must(p.Amount.v != 0, "a posting of nothing")
		must((p.Account == "") != (p.CustomerCode == ""), "a posting on %q and %q", p.Account, p.CustomerCode)
		sum += p.Amount.v
		m := movement{kind: p.Type, amount: p.Amount.v, venue: p.Account}
		balance := a.venue[p.Account] + p.Amount.v
		switch {
		case p.Account == "insurance":
			a.venue[p.Account] = balance
			a.fund.balance = balance
			if left[m] == 0 { // the fund is a party of the event, or others pay to it
				m.account, m.venue = a.fund, ""
			}
		case p.Account != "":
			a.venue[p.Account] = balance
		default:
			c := a.customer(p.CustomerCode)
			c.balance += p.Amount.v
			m.account, balance = c, c.balance
			a.touch(c)
		}
		must(balance == p.Balance.v, "the balance of %s%s is %s, not %s", p.Account, p.CustomerCode, text(balance), text(p.Balance.v))
		must(left[m] > 0, "a posting of %s %s on %s%s that should not be; due are %v", text(m.amount), m.kind, p.Account, p.CustomerCode, describe(left))
		left[m]--
	}
	must(sum == 0, "the postings of an event sum to %s", text(sum))
	for m, n := range left {
		must(n == 0, "a posting of %s %s on %s is missing", text(m.amount), m.kind, m.name())
	}
}

func (m movement) name() string {
	if m.account != nil {
		return m.account.code
	}
	return m.venue
}

func describe(left map[movement]int) (out []string) {
	for m, n := range left {
		if n > 0 {
			out = append(out, text(m.amount)+" "+m.kind+" "+m.name())
		}
	}
	return out
}

func (a *Auditor) deposit(e *transactionShape) {
	c := a.customer(e.CustomerCode)
	a.settled(c, nil)
	must(e.Amount.v > 0 && e.Type == "deposit" && e.Status == "completed", "a deposit of %s is %s", text(e.Amount.v), e.Status)
	a.post(e.Postings, []movement{{c, "", "deposit", e.Amount.v}, {nil, "external", "deposit", -e.Amount.v}})
	a.named(e.ReferenceID, e.Code)
	a.openedBalance(c, e.Amount.v, e.ReferenceID)
	must(e.Balance.v == c.balance, "the deposit leaves %s, not %s", text(c.balance), text(e.Balance.v))
}

var (
	ofOpening = regexp.MustCompile(`^opening:`)
	ofCode    = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// named checks the reference of a transaction, which has a code. From rules 6 on, only an import makes references of imports, and a
// reference that looks like a code is the transaction's own.
func (a *Auditor) named(reference, code string) {
	if a.rules < 6 || a.r.opening != nil || reference == code {
		return
	}
	must(!ofOpening.MatchString(reference) && !ofCode.MatchString(reference), "the transaction %s has the reserved reference %s", code, reference)
}

func (a *Auditor) withdrawal(e *transactionShape) {
	c := a.customer(e.CustomerCode)
	w := a.withdrawals[e.Code]
	must(e.Amount.v < 0 && e.Type == "withdrawal", "a withdrawal of %s", text(e.Amount.v))
	if e.Status == "pending" {
		a.settled(c, nil)
		must(w == nil, "the withdrawal %s is requested twice", e.Code)
		a.named(e.ReferenceID, e.Code)
		s := a.standing(c, a.now)
		most := min(s.balance+s.owed-c.pending, s.available()-c.pending)
		must(-e.Amount.v <= most, "%s requests %s of %s", c.code, text(-e.Amount.v), text(most))
		a.withdrawals[e.Code] = &withdrawal{c, -e.Amount.v, e.Status}
		c.pending -= e.Amount.v
		return
	}
	must(w != nil && w.status == "pending" && w.account == c && w.amount == -e.Amount.v, "the withdrawal %s was not pending", e.Code)
	if e.Status == "completed" {
		a.settled(c, nil)
		s := a.standing(c, a.now)
		most := min(s.balance+s.owed, s.available()-c.pending+w.amount)
		must(w.amount <= most, "%s is paid %s of %s", c.code, text(w.amount), text(most))
		a.post(e.Postings, []movement{{c, "", "withdrawal", e.Amount.v}, {nil, "external", "withdrawal", -e.Amount.v}})
		must(c.balance+s.owed >= 0, "%s is paid out down to %s", c.code, text(c.balance))
	}
	w.status = e.Status
	c.pending -= w.amount
	must(e.Balance.v == c.balance, "the withdrawal leaves %s, not %s", text(c.balance), text(e.Balance.v))
}

// feeOf returns the fee on a notional for a rate in basis points × 10⁸. Fees are rounded up and rebates toward zero.
func feeOf(notional, points int64) int64 {
	if notional == 0 || points == 0 {
		return 0
	}
	fee := times(rat(notional, 1), rat(points, 10_000*one))
	if points > 0 {
		return up(fee)
	}
	return toward0(fee)
}

// conserved checks the sums over all accounts: balances, costs with the clearing account, positions on each instrument,
// and the funding account.
func (a *Auditor) conserved() {
	sum := int64(0)
	for _, balance := range a.venue {
		sum += balance
	}
	for _, c := range a.everybody {
		sum += c.balance
	}
	must(sum == 0, "all balances sum to %s", text(sum))
	costs := a.venue["clearing"]
	sizes := make([]int64, len(a.listing))
	for _, c := range append(a.everybody[:len(a.everybody):len(a.everybody)], a.fund) {
		for _, h := range c.positions {
			sizes[h.instrument.index] += h.size
			costs += h.cost
		}
	}
	must(costs == 0, "all costs and clearing sum to %s", text(costs))
	for n, size := range sizes {
		must(size == 0, "all positions on %s sum to %d", a.listing[n].Symbol, size)
	}
	must(a.venue["funding"] == a.funding, "%s are kept for funding, and the instants left %s there", text(a.venue["funding"]), text(a.funding))
}

// after returns the size and cost of a position after a trade of signed steps at a price, and the profit that it
// realizes. Closing q of Q steps removes q ÷ Q of the cost, rounded half to even.
func (h *position) after(ticks, steps int64) (size, cost, realized int64) {
	closing := int64(0)
	if h.size > 0 != (steps > 0) {
		closing = min(abs(h.size), abs(steps))
	}
	cost = h.cost
	if closing > 0 {
		part := even(new(big.Rat).Mul(rat(h.cost, 1), rat(closing, abs(h.size))))
		cost -= part
		realized = -h.instrument.worth(ticks, sign(steps > 0)*closing) - part
	}
	cost += h.instrument.worth(ticks, sign(steps > 0)*(abs(steps)-closing))
	return h.size + steps, cost, realized
}

// Withdrawals returns the sorted codes of the pending withdrawals.
func (a *Auditor) Withdrawals() (codes []string) {
	for code, w := range a.withdrawals {
		if w.status == "pending" {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}
