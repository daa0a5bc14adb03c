package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// governed is the state as decide.Core.Govern needs it.
type governed struct{ *State }

// Governed returns the state's rules, as far as four eyes need them.
func (s *State) Governed() decide.Governed { return governed{s} }

// Act implements decide.Governed.
func (g governed) Act(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	return g.act(at, c)
}

// Payloads implements decide.Governed.
func (governed) Payloads() *decide.Payloads { return Payloads() }

// Actions implements decide.Governed.
func (governed) Actions() []decide.Action {
	return []decide.Action{
		{Name: CommandMakeDeposit, Unit: currency},
		{Name: CommandDepositInsurance, Unit: currency},
		{Name: CommandRequestWithdrawal, Unit: currency},
		{Name: CommandCompleteWithdrawal, Unit: currency},
		{Name: CommandCancelWithdrawal, Unit: currency},
		{Name: CommandSetFeeProfile, Unit: "basis points of rebate"},
		{Name: CommandSetMarginProfile},
		{Name: CommandListInstrument},
		{Name: CommandChangeInstrument},
		{Name: CommandDelistInstrument},
		{Name: CommandImportOpening, Unit: currency},
		{Name: decide.CommandActivateRules},
		{Name: decide.CommandPutBackDue},
	}
}

// Subject implements decide.Governed. A broker's own change of fees can give no rebate, and no policy covers it.
func (g governed) Subject(c decide.Command) (decide.Subject, bool) {
	s := decide.Subject{Action: c.Type}
	switch p := c.Payload.(type) {
	case *MakeDeposit:
		s.Objects, s.Amount, s.Reference = []string{transfersOf(p.CustomerCode)}, p.Amount.Decimal(), p.ReferenceID
	case *RequestWithdrawal:
		s.Objects, s.Amount, s.Reference = []string{transfersOf(p.CustomerCode)}, p.Amount.Decimal(), p.ReferenceID
	case *DepositInsurance:
		s.Objects, s.Amount, s.Reference = []string{insuranceObject}, p.Amount.Decimal(), p.ReferenceID
	case *CompleteWithdrawal:
		s.Objects, s.Amount = []string{withdrawalObject(p.Code)}, g.withdrawn(p.Code)
	case *CancelWithdrawal:
		s.Objects, s.Amount = []string{withdrawalObject(p.Code)}, g.withdrawn(p.Code)
	case *SetFeeProfile:
		s.Objects, s.Amount = []string{feesOf(p.CustomerCode, p.Symbol), instrumentObject(p.Symbol)}, p.MakerFee.Neg()
		return s, p.Operator
	case *SetMarginProfile:
		s.Objects = []string{marginsOf(p.CustomerCode)}
	case *ListInstrument:
		s.Objects = []string{instrumentObject(p.Instrument.Symbol)}
	case *ChangeInstrument:
		s.Objects = []string{instrumentObject(p.Symbol)}
	case *DelistInstrument:
		s.Objects = []string{instrumentObject(p.Symbol)}
	case *ImportOpening:
		s.Objects, s.Amount, s.Reference = []string{openingObject(p.SHA256)}, p.BalanceTotal().Decimal(), p.SHA256
		if p.PositionTotal().Sign() != 0 { // at entry prices of its choice, a file moves money without any balance
			s.Amount = fixed.Decimal{Coef: maxInt64}
		}
	default:
		return s, false
	}
	return s, true
}

// withdrawn returns the amount of a withdrawal, or 0 if there is none.
func (s *State) withdrawn(code scalar.ID) fixed.Decimal {
	if w := s.withdrawals[code]; w != nil {
		return (-w.transaction.Amount).Decimal()
	}
	return fixed.Decimal{}
}

// insuranceObject is the insurance fund as an object of proposals.
const insuranceObject = "insurance"

func transfersOf(customer string) string     { return "transfers/" + customer }
func marginsOf(customer string) string       { return "margins/" + customer }
func feesOf(customer, symbol string) string  { return "fees/" + customer + "/" + symbol }
func instrumentObject(symbol string) string  { return "instrument/" + symbol }
func openingObject(sha256 string) string     { return "opening/" + sha256 }
func withdrawalObject(code scalar.ID) string { return "withdrawal/" + code.String() }

// touched returns the objects of proposals that an event changes. Trades and charges change none: the rules judge the balance
// again when a proposal is confirmed.
func touched(e decide.Event) []string {
	switch e := e.(type) {
	case *DepositCompleted:
		return []string{transfersOf(e.CustomerCode)}
	case *WithdrawalRequested:
		return []string{transfersOf(e.CustomerCode)}
	case *WithdrawalCompleted:
		return []string{transfersOf(e.CustomerCode), withdrawalObject(e.Code)}
	case *WithdrawalCanceled:
		return []string{transfersOf(e.CustomerCode), withdrawalObject(e.Code)}
	case *InsuranceDeposited:
		return []string{insuranceObject}
	case *FeeProfileSet:
		return []string{feesOf(e.CustomerCode, e.Symbol)}
	case *MarginProfileSet:
		return []string{marginsOf(e.CustomerCode)}
	case *InstrumentListed:
		return []string{instrumentObject(e.Symbol)}
	case *InstrumentChanged:
		return []string{instrumentObject(e.Symbol)}
	case *InstrumentDelisted:
		return []string{instrumentObject(e.Symbol)}
	case *OpeningImported:
		return []string{openingObject(e.SHA256)}
	}
	return nil
}

// The forms of proposed commands in the log. Each has the fields of a payload, so that the compiler compares the two.
type (
	transferContent struct {
		CustomerCode string      `json:"customer_code"`
		Currency     string      `json:"currency"`
		Amount       fixed.Money `json:"amount"`
		ReferenceID  string      `json:"reference_id,omitzero"`
	}
	insuranceContent struct {
		Amount      fixed.Money `json:"amount"`
		ReferenceID string      `json:"reference_id,omitzero"`
	}
	codeContent struct {
		Code scalar.ID `json:"code"`
	}
	symbolContent struct {
		Symbol string `json:"symbol"`
	}
	feeContent struct {
		CustomerCode string        `json:"customer_code"`
		Symbol       string        `json:"symbol"`
		MakerFee     fixed.Decimal `json:"maker_fee"`
		TakerFee     fixed.Decimal `json:"taker_fee"`
		Operator     bool          `json:"operator"`
	}
	marginContent struct {
		CustomerCode      string        `json:"customer_code"`
		Leverage          int           `json:"leverage,omitzero"`
		InitialMargin     fixed.Decimal `json:"initial_margin,omitzero"`
		MaintenanceMargin fixed.Decimal `json:"maintenance_margin,omitzero"`
	}
	// Members that are not given are left out with omitempty, since omitzero would leave out a pointer to 0.
	instrumentContent struct {
		Symbol                 string         `json:"symbol"`
		Status                 *market.Status `json:"status,omitzero"`
		MinAmount              *fixed.Decimal `json:"min_amount,omitempty"`
		MaxAmount              *fixed.Decimal `json:"max_amount,omitempty"`
		InitMarginReq          *fixed.Decimal `json:"init_margin_req,omitempty"`
		MaintMarginReq         *fixed.Decimal `json:"maint_margin_req,omitempty"`
		MaxLeverage            *int           `json:"max_leverage,omitzero"`
		FundingIntervalSeconds *int           `json:"funding_interval_seconds,omitzero"`
		PriceBand              *fixed.Decimal `json:"price_band,omitempty"`
		LimitBand              *fixed.Decimal `json:"limit_band,omitempty"`
		MakerFee               *fixed.Decimal `json:"maker_fee,omitempty"`
		TakerFee               *fixed.Decimal `json:"taker_fee,omitempty"`
		IndexStaleSeconds      *int           `json:"index_stale_seconds,omitzero"`
		Tiers                  []market.Tier  `json:"margin_tiers,omitzero"`
	}
)

// Content implements decide.Proposable.
func (p *MakeDeposit) Content() any { return (*transferContent)(p) }

// Content implements decide.Proposable.
func (p *RequestWithdrawal) Content() any { return (*transferContent)(p) }

// Content implements decide.Proposable.
func (p *DepositInsurance) Content() any { return (*insuranceContent)(p) }

// Content implements decide.Proposable.
func (p *CompleteWithdrawal) Content() any { return (*codeContent)(p) }

// Content implements decide.Proposable.
func (p *CancelWithdrawal) Content() any { return (*codeContent)(p) }

// Content implements decide.Proposable.
func (p *SetFeeProfile) Content() any { return (*feeContent)(p) }

// Content implements decide.Proposable.
func (p *SetMarginProfile) Content() any { return (*marginContent)(p) }

// Content implements decide.Proposable.
func (p *ListInstrument) Content() any { return &p.Instrument }

// Content implements decide.Proposable.
func (p *ChangeInstrument) Content() any { return (*instrumentContent)(p) }

// Content implements decide.Proposable.
func (p *DelistInstrument) Content() any { return (*symbolContent)(p) }
