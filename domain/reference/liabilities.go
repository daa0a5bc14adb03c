package reference

import (
	"encoding/hex"
	"strconv"
)

// owed holds the liabilities after a record that fixed funding, in 10⁻⁸ USDC.
type owed struct {
	sequence        int64
	hash            string
	time            moment // the last instant that the record fixed
	total, deficits int64
	venue           map[string]int64
	paidIn          int64
}

// owe sums up the liabilities. Every instant that was fixed counts as posted.
func (a *Auditor) owe(last moment) {
	o := &owed{sequence: a.sequence, hash: hex.EncodeToString(a.tip[:]), time: last, venue: make(map[string]int64), paidIn: -a.venue["external"]}
	var funded, settled int64
	after := func(c *account) int64 {
		balance := c.balance
		for _, h := range c.positions {
			_, credit := a.owes(h)
			settlement := a.unsettled(h)
			balance, funded, settled = balance+credit, funded+credit-settlement, settled+settlement
		}
		return balance
	}
	for _, c := range a.everybody {
		if balance := after(c); balance > 0 {
			o.total += balance
		} else {
			o.deficits -= balance
		}
	}
	o.venue["insurance"] = after(a.fund)
	o.venue["fees"] = a.venue["fees"]
	o.venue["clearing"] = a.venue["clearing"] - settled
	// When all have posted, the account funding holds a remainder of rounding.
	o.venue["rounding"] = a.venue["rounding"] + a.venue["funding"] - funded
	sum := o.total - o.deficits
	for _, balance := range o.venue {
		sum += balance
	}
	must(sum == o.paidIn, "customers and the venue have %s, and %s was paid in", text(sum), text(o.paidIn))
	a.owed = o
}

// stated compares a recorded statement with the liabilities after its position.
func (a *Auditor) stated(e *statedShape) {
	o := a.owed
	must(a.rules >= 3, "liabilities are stated under rules %d", a.rules)
	must(o != nil && e.Position.Sequence == o.sequence && e.Position.Hash == o.hash, "liabilities are stated about record %d", e.Position.Sequence)
	must(e.Timestamp == o.time && e.Asset == "USDC" && e.Scale == 8, "liabilities are stated about %d, in %s with %d decimals", e.Timestamp, e.Asset, e.Scale)
	is := func(name, stated string, n int64) {
		must(stated == strconv.FormatInt(n, 10), "%s is stated as %s, and is %d", name, stated, n)
	}
	is("total", e.Total, o.total)
	is("deficits", e.Deficits, o.deficits)
	is("net_paid_in", e.NetPaidIn, o.paidIn)
	must(len(e.Venue) == 5, "the venue has %d accounts", len(e.Venue))
	for name, stated := range e.Venue {
		is(name, stated, o.venue[name])
	}
	must(o.sequence != a.lastStated, "liabilities are stated twice about record %d", o.sequence)
	a.lastStated = o.sequence
	a.Seen.Stated++
}
