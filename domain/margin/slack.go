package margin

import (
	"math"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// An account's slack is its equity less its maintenance margin; it is negative for an account to liquidate. The slack
// moves with the marks of all instruments on which the account has positions. It is divided into shares, one per
// instrument. A share determines how far the instrument's mark may move before the account must be looked at again:
// while no mark has passed its bound, no share is used up, however the other marks move within their bounds.

// roundings is the maximum sum of the rounding errors of a profit and of a margin requirement: each is below one unit,
// before and after the move.
const roundings = 4

// fundings is the maximum sum of the rounding errors of a position's payments that are fixed and not posted: each is
// below one unit, and there is at most one per interval.
const fundings = 1000

// Share returns an instrument's share of an account's slack, in proportion to its share of the account's notional. It
// is never negative: for an account with less equity than maintenance margin it is a share of the deficit.
func Share(slack, notional fixed.Money, total fixed.Wide) fixed.Money {
	if total.Sign() == 0 {
		return 0
	}
	whole, fits := total.Int64()
	if !fits { // both in larger units, rounded so that the sum of all shares does not exceed the slack
		const coarse = 1 << 16
		whole, _ = total.Div(coarse, fixed.Ceiling).Int64()
		notional /= coarse
	}
	share, _ := fixed.Mul(int64(slack.Abs()), int64(notional)).Div(whole, fixed.Down).Money()
	return share
}

// FundingBound returns the last levy up to which the funding of this instrument changes the account's slack by less
// than the share. The levy is the sum of mark × rate over all funding instants, in marks × 10⁻⁸: long positions pay
// when it rises, short positions when it falls. above reports whether the levy passes the bound upward.
func (e Exposure) FundingBound(levy int64, share fixed.Money, lacking bool) (bound int64, above bool) {
	reach := e.Contract.Reach(fixed.Abs(e.Size), max(0, share-fundings), fixed.Rate{Num: 1, Den: market.RateUnit})
	above = (e.Size > 0) != lacking
	switch {
	case !above && levy < 0 && reach > levy-math.MinInt64:
		return math.MinInt64, false
	case !above:
		return levy - reach, false
	case levy > 0 && reach > math.MaxInt64-levy:
		return math.MaxInt64, true
	}
	return levy + reach, true
}

// Bound returns the last mark, going from the exposure's mark, up to which this instrument changes the account's slack
// by less than the share. For an account with slack, it bounds the fall of the mark for a long position and the rise
// for a short one (above is true). For an account that lacks equity, the directions are opposite. Beyond the bound the
// account must be looked at; up to it, this instrument cannot have used up the share. The exposure's size must not be
// zero.
//
// A long position that loses notional needs less margin, at the lowest rate of any bracket; a short one needs more, at
// the highest. So the bound is exact if there is one bracket, and otherwise too tight rather than too loose.
func (e Exposure) Bound(share fixed.Money, lacking bool) (bound int64, above bool) {
	least, most := e.Contract.MaintenanceRates(e.MaintenanceFloor)
	loses := fixed.Rate{Num: least.Den - least.Num, Den: least.Den}
	if e.Size < 0 {
		loses = fixed.Rate{Num: most.Den + most.Num, Den: most.Den}
	}
	reach := e.Contract.Reach(fixed.Abs(e.Size), max(0, share-roundings), loses)
	above = (e.Size < 0) != lacking
	switch {
	case !above:
		return max(0, e.Mark-reach), false
	case reach > math.MaxInt64-e.Mark:
		return math.MaxInt64, true
	}
	return e.Mark + reach, true
}
