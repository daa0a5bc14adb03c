package whatif

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// liquidations holds the accounts that are in liquidation in each world, as of the last comparison.
type liquidations struct {
	recorded, other customers
	affected        []string // accounts that may have begun or ended their liquidation since
}

// customers is a set of customers.
type customers map[string]bool

// newLiquidations returns the liquidations of two equal worlds.
func newLiquidations(s *trading.State) liquidations {
	l := liquidations{recorded: make(customers), other: make(customers)}
	for _, code := range s.InLiquidations() {
		l.recorded[code], l.other[code] = true, true
	}
	return l
}

// affect adds the accounts that the last record of a world affected.
func (l *liquidations) affect(s *trading.State) { l.affected = append(l.affected, s.LastAffected()...) }

// begins updates the set, and reports whether the account was not in liquidation and now is.
func (c customers) begins(code string, now bool) bool {
	before := c[code]
	if now {
		c[code] = true
	} else {
		delete(c, code)
	}
	return now && !before
}

// compareLiquidations adds the liquidations that began in one world since the last call, while the account is not in liquidation in the
// other, to the report. It MUST be called after each record, when both worlds have applied it, and after each step that only the other
// world has: a later step may end the liquidation.
func (r *run) compareLiquidations(at record.Position, now scalar.Time) {
	slices.Sort(r.liquidations.affected)
	for _, code := range slices.Compact(r.liquidations.affected) {
		was, is := r.recorded.InLiquidation(code), r.other.InLiquidation(code)
		avoided, added := r.liquidations.recorded.begins(code, was) && !is, r.liquidations.other.begins(code, is) && !was
		d := Difference{Position: at, Time: now, Type: string(trading.WorkLiquidation), Kind: Liquidations, Account: code}
		if avoided {
			r.count(code, at, func(a *Account) **Count { return &a.Avoided })
			d.Recorded, d.WhatIf = []string{liquidates}, []string{liquidatesNot}
			r.differs(d)
		}
		if added {
			r.count(code, at, func(a *Account) **Count { return &a.Added })
			d.Recorded, d.WhatIf = []string{liquidatesNot}, []string{liquidates}
			r.differs(d)
		}
	}
	r.liquidations.affected = r.liquidations.affected[:0]
}

const liquidates, liquidatesNot = "in liquidation", "not in liquidation"
