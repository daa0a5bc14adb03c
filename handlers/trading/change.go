package trading

import (
	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// change returns a price change in percent with 2 decimals, rounded half to even. It returns nil if from is not
// positive.
func change(from, to fixed.Decimal) *fixed.Decimal {
	if from.Sign() <= 0 {
		return nil
	}
	first := decimal.New(from.Coef, -int32(from.Scale))
	moved := decimal.New(to.Coef, -int32(to.Scale)).Sub(first).Shift(2)
	percent := moved.DivRound(first, 12).RoundBank(2)
	return &fixed.Decimal{Coef: percent.Shift(2).IntPart(), Scale: 2}
}
