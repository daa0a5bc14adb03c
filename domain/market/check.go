package market

import (
	"regexp"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

var (
	symbolForm   = regexp.MustCompile(`^[A-Z0-9]{1,24}(_[A-Z0-9]{1,8})?$`)
	currencyForm = regexp.MustCompile(`^[A-Z0-9]{2,12}$`)
)

// MaxInstrumentLeverage is the highest max_leverage of an instrument or a margin tier, which clients are shown. What an order
// may set is lower: see trading.MaxLeverage.
const MaxInstrumentLeverage = 100

// Limits of parameters.
const (
	maxFee     = 100       // basis points
	maxTiers   = 32        // margin brackets
	maxSeconds = 7 * 86400 // maximum of index_stale_seconds
	daySeconds = 86400     // must be a multiple of the funding interval
)

// Check returns all errors of an instrument, or none if it can be traded. The messages do not begin with the field.
func (i *Instrument) Check() []validation.FieldError {
	var errs validation.Errors
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			errs.AddCode(field, validation.InvalidValue, format, args...)
		}
	}
	wrong(!symbolForm.MatchString(i.Symbol), "symbol", "must look like BTCUSDC_PERP")
	wrong(!currencyForm.MatchString(i.Underlying), "underlying", "must be 2 to 12 capital letters or digits")
	wrong(!currencyForm.MatchString(i.QuoteCurrency), "quote_currency", "must be 2 to 12 capital letters or digits")
	wrong(i.SettlementCurrency != "USDC", "settlement_currency", "must be USDC")
	wrong(i.QuoteCurrency != i.SettlementCurrency, "quote_currency", "must be the settlement currency: contracts are linear")
	wrong(!i.Status.Valid() && i.Status != Withdrawn, "status", "must be open, post_only, cancel_only or trade_halt")

	positive := func(d fixed.Decimal, field string) bool {
		bad := d.Sign() <= 0 || d.Scale > 12 || d.Coef > 1e15
		wrong(bad, field, "must be positive, with at most 12 decimals and 15 digits")
		return !bad
	}
	countable := true
	for _, p := range []struct {
		value fixed.Decimal
		field string
	}{{i.PriceTick, "price_tick"}, {i.AmountStep, "amount_step"}, {i.MinAmount, "min_amount"}, {i.MaxAmount, "max_amount"}, {i.ContractSize, "contract_size"}} {
		if !positive(p.value, p.field) {
			countable = false
		}
	}
	if countable {
		_, whole := unitOf(i.PriceTick.Trim(), i.AmountStep.Trim(), i.ContractSize.Trim())
		wrong(!whole, "price_tick", "× amount_step × contract_size must be a whole multiple of 0.00000001")
		wrong(whole && !i.countsMarks(), "price_tick", "has too many digits together with amount_step and contract_size")
		_, whole = i.MinAmount.Over(i.AmountStep)
		wrong(!whole, "min_amount", "must be a whole multiple of amount_step")
		_, whole = i.MaxAmount.Over(i.AmountStep)
		wrong(!whole, "max_amount", "must be a whole multiple of amount_step")
		wrong(i.MinAmount.Cmp(i.MaxAmount) > 0, "min_amount", "must not be above max_amount")
	}
	wrong(i.MaxLeverage < 1 || i.MaxLeverage > MaxInstrumentLeverage, "max_leverage", "must be from 1 to %d", MaxInstrumentLeverage)
	wrong(i.FundingIntervalSeconds < 60 || i.FundingIntervalSeconds > daySeconds || daySeconds%i.FundingIntervalSeconds != 0,
		"funding_interval_seconds", "must be at least 60 and divide a day of %d", daySeconds)
	wrong(i.IndexStaleSeconds < 0 || i.IndexStaleSeconds > maxSeconds, "index_stale_seconds", "must be from 0 to %d", maxSeconds)
	wrong(!percentage(i.PriceBand) || i.PriceBand.Sign() == 0, "price_band", "must be a percentage above 0 and at most 100, with at most 4 decimals")
	wrong(!percentage(i.LimitBand) || i.LimitBand.Sign() == 0, "limit_band", "must be a percentage above 0 and at most 100, with at most 4 decimals")
	wrong(!FeeInRange(i.MakerFee, true), "maker_fee", "must be from -%d to %d basis points with at most 4 decimals", maxFee, maxFee)
	wrong(!FeeInRange(i.TakerFee, false), "taker_fee", "must be from 0 to %d basis points with at most 4 decimals", maxFee)
	wrong(i.InitMarginReq.Trim().Scale > 2, "init_margin_req", "must have at most 2 decimals")
	wrong(i.MaintMarginReq.Trim().Scale > 2, "maint_margin_req", "must have at most 2 decimals")
	i.checkTiers(&errs)
	return errs.List
}

// countsMarks reports whether values at mark can be counted exactly in 128 bits.
func (i *Instrument) countsMarks() bool {
	step, size := i.AmountStep.Trim(), i.ContractSize.Trim()
	_, ok := fixed.MulInt64(step.Coef, size.Coef)
	scale := int(step.Scale) + int(size.Scale)
	return ok && step.Coef*size.Coef < 1e9 && scale <= 12 &&
		i.PriceTick.Trim().Coef < 1e6 && scale+int(i.PriceTick.Scale)+markDigits-8 <= 6
}

func (i *Instrument) checkTiers(errs *validation.Errors) {
	if len(i.Tiers) == 0 || len(i.Tiers) > maxTiers {
		errs.AddCode("margin_tiers", validation.InvalidValue, "must be 1 to %d", maxTiers)
		return
	}
	for n, t := range i.Tiers {
		wrong := func(bad bool, field, message string) {
			if bad {
				errs.Add(validation.FieldError{Path: validation.At("margin_tiers", n, field), Code: validation.InvalidValue, Message: message})
			}
		}
		wrong(n == 0 && t.NotionalFrom != 0, "notional_from", "must be 0 in the first tier")
		wrong(n > 0 && t.NotionalFrom <= i.Tiers[n-1].NotionalFrom, "notional_from", "must rise from tier to tier")
		wrong(!percentage(t.InitMarginReq) || t.InitMarginReq.Sign() == 0, "init_margin_req", "must be a percentage above 0 and at most 100, with at most 4 decimals")
		most := t.allows()
		wrong(most > 0 && (t.MaxLeverage < 1 || t.MaxLeverage > most), "max_leverage", "must be at least 1, and at most what init_margin_req allows")
		wrong(!percentage(t.MaintMarginReq) || t.MaintMarginReq.Sign() == 0 || t.MaintMarginReq.Cmp(t.InitMarginReq) > 0,
			"maint_margin_req", "must be a percentage above 0 and at most init_margin_req, with at most 4 decimals")
	}
	first := i.Tiers[0]
	if first.InitMarginReq.Cmp(i.InitMarginReq) != 0 {
		errs.AddCode("init_margin_req", validation.InvalidValue, "must be that of the first tier")
	}
	if first.MaintMarginReq.Cmp(i.MaintMarginReq) != 0 {
		errs.AddCode("maint_margin_req", validation.InvalidValue, "must be that of the first tier")
	}
}

func percentage(d fixed.Decimal) bool {
	n, ok := d.In(4)
	return ok && n >= 0 && n <= parts
}

// FeeInRange reports whether a fee in basis points is from 0 to 100 with at most 4 decimals. With rebate set, negative
// fees down to -100 are also in range.
func FeeInRange(fee fixed.Decimal, rebate bool) bool {
	n, ok := FeeParts(fee)
	if !ok || n > maxFee*10_000 {
		return false
	}
	return n >= 0 || rebate && n >= -maxFee*10_000
}

// Normal returns the instrument in normal form: percentages have at least 2 decimals, an empty status is open, missing
// tiers are one tier with the two requirements, and a missing MaxLeverage is the one that the first tier permits.
func (i Instrument) Normal() Instrument {
	if i.Status == "" {
		i.Status = Open
	}
	i.InitMarginReq, i.MaintMarginReq = percent(i.InitMarginReq), percent(i.MaintMarginReq)
	i.PriceBand, i.LimitBand = percent(i.PriceBand), percent(i.LimitBand)
	i.MakerFee, i.TakerFee = i.MakerFee.Trim(), i.TakerFee.Trim()
	i.PriceTick, i.AmountStep, i.ContractSize = i.PriceTick.Trim(), i.AmountStep.Trim(), i.ContractSize.Trim()
	i.MinAmount = i.MinAmount.Trim().AtLeast(i.AmountStep.Scale)
	i.MaxAmount = i.MaxAmount.Trim()
	if len(i.Tiers) == 0 {
		i.Tiers = []Tier{{InitMarginReq: i.InitMarginReq, MaintMarginReq: i.MaintMarginReq}}
	}
	if i.MaxLeverage == 0 {
		i.MaxLeverage = i.PermittedLeverage()
	}
	tiers := make([]Tier, len(i.Tiers))
	for n, t := range i.Tiers {
		tiers[n] = Tier{t.NotionalFrom, percent(t.InitMarginReq), percent(t.MaintMarginReq), t.MaxLeverage}
		if t.MaxLeverage == 0 {
			tiers[n].MaxLeverage = min(t.allows(), i.MaxLeverage)
		}
	}
	i.Tiers = tiers
	return i
}

func percent(d fixed.Decimal) fixed.Decimal { return d.Trim().AtLeast(2) }
