package trading

import (
	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// change returns how far a price moved, in percent with 2 decimals, half to even; nil where there was none.
func change(from, to fixed.Decimal) *fixed.Decimal {
	if from.Sign() <= 0 {
		return nil
	}
	first := decimal.New(from.Coef, -int32(from.Scale))
	moved := decimal.New(to.Coef, -int32(to.Scale)).Sub(first).Shift(2)
	percent := moved.DivRound(first, 12).RoundBank(2)
	return &fixed.Decimal{Coef: percent.Shift(2).IntPart(), Scale: 2}
}
