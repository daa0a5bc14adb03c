package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// FeeProfileItem holds a customer's fees on an instrument, in basis points.
type FeeProfileItem struct {
	Symbol   string        `json:"symbol"`
	MakerFee fixed.Decimal `json:"maker_fee"`
	TakerFee fixed.Decimal `json:"taker_fee"`
}

// NewFeeProfileItem converts the fees of an event to their JSON form.
func NewFeeProfileItem(e *trading.FeeProfileSet) FeeProfileItem {
	return FeeProfileItem{e.Symbol, e.MakerFee.Trim(), e.TakerFee.Trim()}
}
