package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// FeeProfileItem is what a customer pays on an instrument, in basis points.
type FeeProfileItem struct {
	Symbol   string        `json:"symbol"`
	MakerFee fixed.Decimal `json:"maker_fee"`
	TakerFee fixed.Decimal `json:"taker_fee"`
}

// NewFeeProfileItem shows the fees that were set.
func NewFeeProfileItem(e *trading.FeeProfileSet) FeeProfileItem {
	return FeeProfileItem{e.Symbol, e.MakerFee.Trim(), e.TakerFee.Trim()}
}
