package margin

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// StepSize returns how many steps of a position the next step of its liquidation closes: 20 % of the size when the
// liquidation began, rounded up, at least the least amount of an order, and at most the rest.
func StepSize(c *market.Contract, began, rest int64) int64 {
	return min(max(began/5+min(began%5, 1), c.MinSteps), rest)
}

// BankruptcyPrice returns the price in ticks at which closing all of a position of the signed size would take the
// position's part of the account's equity, which is its part of the account's maintenance margin:
//
//	p = m − E × (Mᵢ ÷ M) ÷ (s × c)
//
// It lies on the tick, up for a long position and down for a short one, is at least one tick, and at most the highest
// price that there is. Size and the maintenance margins are not zero.
func BankruptcyPrice(c *market.Contract, mark, size int64, equity fixed.Wide, maintenance fixed.Money, total fixed.Wide) int64 {
	product := func(wide fixed.Wide, factors ...int64) *big.Int {
		p := wide.Big()
		for _, f := range factors {
			p.Mul(p, big.NewInt(f))
		}
		return p
	}
	// Over the one denominator T × M × s × u, of T marks in a tick and u units of money for a step at a tick. With the
	// size's sign on both sides, short positions need no other formula.
	tick := c.TickMarks(1)
	above := product(total, mark, size, c.Unit)
	above.Sub(above, product(equity, int64(maintenance), tick))
	below := product(total, tick, size, c.Unit)
	if size < 0 {
		above.Neg(above)
		below.Neg(below)
	}
	price, rest := new(big.Int).DivMod(above, below, new(big.Int)) // down, whatever the sign
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

// LiquidationFee returns what a fill of a liquidation pays: 0.5 % of its notional, rounded up, but no more than the
// equity that the fill leaves.
func LiquidationFee(notional, equity fixed.Money) fixed.Money {
	return max(0, min(fixed.Rate{Num: 5, Den: 1000}.Of(notional, fixed.Ceiling), equity))
}

// Score ranks the other side of a position that is to be deleveraged: who has gained most with the highest leverage
// comes first. It is counted in units of 10⁻⁸, cut toward zero. With the position's unrealised profit U, its cost and
// its notional at mark, and the account's equity E:
//
//	score = U ÷ |cost| × lev where U > 0, else U ÷ |cost| ÷ lev; lev = notional ÷ max(E, 1)
//
// A position that cost nothing has the score 0.
func Score(unrealised, cost, notional, equity fixed.Money) fixed.Wide {
	if cost == 0 || notional == 0 {
		return fixed.Wide{}
	}
	const places = int64(1e8)
	least := int64(max(equity, fixed.Unit))
	if unrealised > 0 {
		return fixed.Quotient(int64(unrealised), int64(notional), places, int64(cost.Abs()), least)
	}
	return fixed.Quotient(int64(unrealised.Abs()), least, places, int64(cost.Abs()), int64(notional)).Neg()
}

// Bearable returns how many of so many steps an account can trade at a price away from mark without its equity ending
// below zero. Each step changes the equity by as much.
func Bearable(equity, each fixed.Money, steps int64) int64 {
	after := fixed.Mul(int64(each), steps).Add(fixed.WideOf(int64(equity)))
	switch {
	case after.Sign() >= 0:
		return steps
	case each >= 0 || equity < 0: // the more the better, and all is not enough; or the first step makes it worse
		return 0
	}
	return int64(equity / -each)
}
