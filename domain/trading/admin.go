package trading

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// registerCustomer decides a new customer account.
func (r request) registerCustomer(payload *RegisterCustomer) (decide.Decision, error) {
	var f validation.Errors
	code, broker := payload.CustomerCode, payload.Broker
	if code == "" {
		code = derivedCustomerCode(r.at)
	}
	if broker == "" {
		broker = r.command.Actor.Broker
	}
	if !validCode(code) {
		f.AddCode("customer_code", "INVALID_CUSTOMER_CODE", "customer_code must be 1 to 32 of A-Z a-z 0-9 . _ -")
	}
	if !validCode(broker) {
		f.AddCode("broker", "INVALID_BROKER", "broker must be 1 to 32 of A-Z a-z 0-9 . _ -")
	}
	if !validName(payload.Name) {
		f.AddCode("name", "INVALID_NAME", "name must be at most 64 characters without control characters")
	}
	if err := refuseFirst(f.List); err != nil {
		return decide.Decision{}, err
	}
	if r.holder(code) != nil { // the insurance fund has a code as well
		return decide.Decision{}, &decide.Refusal{Kind: decide.Conflict, Code: "CUSTOMER_CODE_TAKEN", Field: "customer_code", Message: "the customer_code is taken"}
	}
	return accepted(&CustomerRegistered{CustomerCode: code, Broker: broker, Name: payload.Name, Created: r.at.Time})
}

func validName(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxNameLength && strings.IndexFunc(s, unicode.IsControl) < 0
}

// listInstrument decides a new instrument.
func (r request) listInstrument(payload *ListInstrument) (decide.Decision, error) {
	i := payload.Instrument.Normal()
	if err := checkInstrument(&i); err != nil {
		return decide.Decision{}, err
	}
	if e := r.CheckLeverage(&i); e != nil {
		return decide.Decision{}, invalidInstrument(e.Path.String(), e.Message)
	}
	if r.instruments[i.Symbol] != nil {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Conflict, Code: "SYMBOL_TAKEN", Field: "symbol", Message: "the symbol is or was listed"}
	}
	return accepted(&InstrumentListed{i})
}

// checkInstrument returns the first error of an instrument as Decide's answer, or nil.
func checkInstrument(i *market.Instrument) error {
	if errs := i.Check(); len(errs) > 0 {
		return invalidInstrument(errs[0].Path.String(), errs[0].Message)
	}
	if i.Status == market.Withdrawn {
		return invalidInstrument("status", "must be open, post_only, cancel_only or trade_halt")
	}
	return nil
}

func invalidInstrument(field, message string) error {
	return &decide.Refusal{Kind: decide.Invalid, Code: "INVALID_INSTRUMENT", Field: field, Message: field + " " + message}
}

// CheckLeverage returns the error of a new instrument with a max_leverage above the one that its initial margin permits, or nil. The
// rules in force may permit it. The message does not begin with the field. The instrument MUST be in normal form.
func (s *State) CheckLeverage(i *market.Instrument) *validation.FieldError {
	if most := i.PermittedLeverage(); s.capsLeverage() && i.MaxLeverage > most {
		return leverageNotPermitted(most)
	}
	return nil
}

// leverageNotPermitted is the error of a max_leverage above most, which the initial margin permits.
func leverageNotPermitted(most int) *validation.FieldError {
	return &validation.FieldError{Path: validation.At("max_leverage"), Code: validation.InvalidValue,
		Message: "must be at most " + strconv.Itoa(most) + ", which init_margin_req permits"}
}

// changeInstrument decides new parameters of an instrument.
func (r request) changeInstrument(payload *ChangeInstrument) (decide.Decision, error) {
	i, err := r.instrumentToChange(payload.Symbol)
	if err != nil {
		return decide.Decision{}, err
	}
	before := &i.contract.Instrument
	after := r.Changed(*before, payload)
	if err := checkInstrument(&after); err != nil {
		return decide.Decision{}, err
	}
	// The present value is not refused, so that a client may send back the instrument that it has read.
	if p := payload.MaxLeverage; p != nil && *p > after.MaxLeverage && *p != before.MaxLeverage {
		e := leverageNotPermitted(after.MaxLeverage)
		return decide.Decision{}, invalidInstrument(e.Path.String(), e.Message)
	}
	if lifted := i.guardLifted(r.at, &after); lifted != nil {
		return accepted(&InstrumentChanged{after}, lifted)
	}
	return accepted(&InstrumentChanged{after})
}

// setFeeProfile decides a customer's fees on an instrument.
func (r request) setFeeProfile(payload *SetFeeProfile) (decide.Decision, error) {
	a, err := r.customerOf(payload.CustomerCode)
	if payload.Operator {
		a, err = r.anyCustomer(payload.CustomerCode)
	}
	if err != nil {
		return decide.Decision{}, err
	}
	if _, err := r.traded(payload.Symbol); err != nil {
		return decide.Decision{}, err
	}
	var f validation.Errors
	if !market.FeeInRange(payload.MakerFee, payload.Operator) {
		f.AddCode("maker_fee", "INVALID_FEE", "maker_fee must be from 0 to 100 basis points with at most 4 decimals; rebates are the operator's to give")
	}
	if !market.FeeInRange(payload.TakerFee, false) {
		f.AddCode("taker_fee", "INVALID_FEE", "taker_fee must be from 0 to 100 basis points with at most 4 decimals")
	}
	if err := refuseFirst(f.List); err != nil {
		return decide.Decision{}, err
	}
	return accepted(&FeeProfileSet{CustomerCode: a.code, Broker: a.broker, Symbol: payload.Symbol, MakerFee: payload.MakerFee.Trim(), TakerFee: payload.TakerFee.Trim()})
}

// maxDefaultLeverage is the maximum leverage of an account's default margins.
const maxDefaultLeverage = 100

// setMarginProfile decides an account's default margins.
func (r request) setMarginProfile(payload *SetMarginProfile) (decide.Decision, error) {
	a, err := r.anyCustomer(payload.CustomerCode)
	if err != nil {
		return decide.Decision{}, err
	}
	e := &MarginProfileSet{CustomerCode: a.code, Broker: a.broker, Leverage: payload.Leverage,
		InitialMargin: payload.InitialMargin.Trim().AtLeast(2), MaintenanceMargin: payload.MaintenanceMargin.Trim().AtLeast(2)}
	if payload.Leverage != 0 {
		if payload.Leverage < 0 || payload.Leverage > maxDefaultLeverage || !payload.InitialMargin.IsZero() || !payload.MaintenanceMargin.IsZero() {
			return decide.Decision{}, &decide.Refusal{Kind: decide.Invalid, Code: "INVALID_LEVERAGE", Field: "leverage", Message: "leverage must be from 1 to 100, and stands alone"}
		}
		rate := fixed.Leverage(payload.Leverage)
		e.InitialMargin, e.MaintenanceMargin = rate.Percent(), rate.Half().Percent()
		return accepted(e)
	}
	var f validation.Errors
	if !marginPercentage(payload.InitialMargin) {
		f.AddCode("initial_margin", "INVALID_MARGIN", "initial_margin must be a percentage above 0 and at most 100, with at most 4 decimals")
	}
	if !marginPercentage(payload.MaintenanceMargin) || payload.MaintenanceMargin.Cmp(payload.InitialMargin) > 0 {
		f.AddCode("maintenance_margin", "INVALID_MARGIN", "maintenance_margin must be a percentage above 0 and at most initial_margin, with at most 4 decimals")
	}
	if err := refuseFirst(f.List); err != nil {
		return decide.Decision{}, err
	}
	return accepted(e)
}

func marginPercentage(d fixed.Decimal) bool {
	n, ok := d.In(4)
	return ok && n > 0 && n <= 1_000_000
}
