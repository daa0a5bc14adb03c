package margin

import (
	"math"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// An account's slack is its equity less its maintenance margin: negative where the account is to be liquidated. The
// slack moves with the marks of all of the account's instruments. Shared out over them, each share says how far that one
// mark may move before anybody has to look at the account again: as long as no mark has passed its bound, no shares are
// used up, whatever the others do within theirs.

// roundings is what the roundings of a profit and of a margin requirement may add up to: each is off by less than a
// unit, before and after.
const roundings = 4

// fundings is what the roundings of the payments may add up to that are fixed for a position and not posted: each is off
// by less than a unit, and there is one an interval at most.
const fundings = 1000

// Share returns an instrument's part of an account's slack, as the instrument's notional is part of the account's. It
// is not negative: for an account with less equity than maintenance margin it is a part of what is lacking.
func Share(slack, notional fixed.Money, total fixed.Wide) fixed.Money {
	if total.Sign() == 0 {
		return 0
	}
	whole, fits := total.Int64()
	if !fits { // both in larger units, rounded so that all shares together are no more than the slack
		const coarse = 1 << 16
		whole, _ = total.Div(coarse, fixed.Ceiling).Int64()
		notional /= coarse
	}
	share, _ := fixed.Mul(int64(slack.Abs()), int64(notional)).Div(whole, fixed.Down).Money()
	return share
}

// FundingBound returns the last levy up to which the account's slack changes by less than a share on account of the
// funding of this instrument. The levy is the sum of mark × rate, in marks × 10⁻⁸, of all funding instants: when it rises
// long positions pay, and short ones when it falls.
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

// Bound returns the last mark, away from the exposure's own, up to which the account's slack changes by less than a
// share on account of this instrument. Of an account with slack that is the mark up to which it may fall for a long
// position, or rise for a short one (above); of one that lacks equity, the other way. Beyond the bound the account is
// to be looked at; up to it nothing can have come of this instrument. The exposure has a size.
//
// A long position that loses notional needs less margin, at the least rate of any bracket; a short one more, at the
// highest. So the bound is exact where there is one bracket, and otherwise too near rather than too far.
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
