package margin

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// StepSize returns how many steps of a position the next liquidation step closes: 20 % of the size when the liquidation
// began, rounded up, at least the minimum amount of an order, and at most the rest.
func StepSize(c *market.Contract, began, rest int64) int64 {
	return min(max(began/5+min(began%5, 1), c.MinSteps), rest)
}

// BankruptcyPrice returns the price in ticks at which closing the whole position of a signed size would use up the
// position's part of the account's equity, which is proportional to its part of the account's maintenance margin:
//
//	p = m − E × (Mᵢ ÷ M) ÷ (s × c)
//
// The result is rounded to the tick, up for a long position and down for a short one. It is at least one tick and at
// most the highest valid price. Size and the maintenance margins must not be zero.
func BankruptcyPrice(c *market.Contract, mark, size int64, equity fixed.Wide, maintenance fixed.Money, total fixed.Wide) int64 {
	product := func(wide fixed.Wide, factors ...int64) *big.Int {
		p := wide.Big()
		for _, f := range factors {
			p.Mul(p, big.NewInt(f))
		}
		return p
	}
	// The price is a fraction with the denominator T × M × s × u, for T marks per tick and u units of money for a step
	// at a tick. The size is signed in both numerator and denominator, so short positions need no separate formula.
	tick := c.TickMarks(1)
	above := product(total, mark, size, c.Unit)
	above.Sub(above, product(equity, int64(maintenance), tick))
	below := product(total, tick, size, c.Unit)
	if size < 0 {
		above.Neg(above)
		below.Neg(below)
	}
	price, rest := new(big.Int).DivMod(above, below, new(big.Int)) // rounds down for either sign
	if size > 0 && rest.Sign() > 0 {
		price.Add(price, big.NewInt(1))
	}
	highest := c.HighestTicks()
	switch {
	case price.Sign() <= 0:
		return 1
	case price.Cmp(big.NewInt(highest)) > 0:
		return highest
	}
	return price.Int64()
}

// LiquidationFee returns the fee of a liquidation fill: 0.5 % of the notional, rounded up, but no more than the equity
// that the fill leaves.
func LiquidationFee(notional, equity fixed.Money) fixed.Money {
	return max(0, min(fixed.Rate{Num: 5, Den: 1000}.Of(notional, fixed.Ceiling), equity))
}

// Score returns the deleveraging score of a position on the opposite side. Positions with the most profit at the
// highest leverage have the highest score. It is in units of 10⁻⁸, truncated toward zero. With the position's
// unrealized profit U, its cost and its notional at mark, and the account's equity E:
//
//	score = U ÷ |cost| × lev where U > 0, else U ÷ |cost| ÷ lev; lev = notional ÷ max(E, 1)
//
// A position with a cost of zero has score 0.
func Score(unrealized, cost, notional, equity fixed.Money) fixed.Wide {
	if cost == 0 || notional == 0 {
		return fixed.Wide{}
	}
	const places = int64(1e8)
	least := int64(max(equity, fixed.Unit))
	if unrealized > 0 {
		return fixed.Quotient(int64(unrealized), int64(notional), places, int64(cost.Abs()), least)
	}
	return fixed.Quotient(int64(unrealized.Abs()), least, places, int64(cost.Abs()), int64(notional)).Neg()
}

// Bearable returns how many of the given steps an account can trade at a price away from mark without its equity ending
// below zero. Each step changes the equity by each.
func Bearable(equity, each fixed.Money, steps int64) int64 {
	after := fixed.Mul(int64(each), steps).Add(fixed.WideOf(int64(equity)))
	switch {
	case after.Sign() >= 0:
		return steps
	case each >= 0 || equity < 0: // either even all steps are not enough, or the first step already makes it worse
		return 0
	}
	return int64(equity / -each)
}
