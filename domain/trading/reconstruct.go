package trading

import (
	"encoding/hex"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// partialPayload is a decide.Partial of this journal.
type partialPayload interface {
	decide.Partial
	// input returns what the events that were decided do not carry of the payload, or nil.
	input(events []decide.Event) any
}

var _ = []partialPayload{new(PlaceOrder), new(AmendOrder), new(SetFeeProfile), new(ChangeInstrument)}

// givenName returns the client's name for something, which is "" if its events show the code instead.
func givenName(name string, code scalar.ID) string {
	if name == code.String() {
		return ""
	}
	return name
}

// derivedCustomerCode returns the code of a customer that is registered without one.
func derivedCustomerCode(at decide.Stamp) string {
	id := at.Derive(0)
	return "C" + hex.EncodeToString(id[:6])
}

// Reconstruct implements decide.Payload.
func (p *RegisterCustomer) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*CustomerRegistered](r); ok {
		*p = RegisterCustomer{CustomerCode: e.CustomerCode, Name: e.Name, Broker: e.Broker}
		if e.CustomerCode == derivedCustomerCode(r.At) {
			p.CustomerCode = ""
		}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *ListInstrument) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*InstrumentListed](r); ok {
		p.Instrument = e.Instrument
	}
	return nil
}

// changeInstrumentInput is the input of ChangeInstrument.
type changeInstrumentInput struct {
	// Given lists the members that the command set. Their values are those of the instrument afterwards. To set a member to
	// the value that it has may change others: margins replace the tiers.
	Given []string `json:"given,omitempty"`
}

// NewInput implements decide.Partial.
func (*ChangeInstrument) NewInput() any { return new(changeInstrumentInput) }

func (p *ChangeInstrument) input([]decide.Event) any {
	var in changeInstrumentInput
	for _, m := range instrumentMembers {
		if m.given(p) {
			in.Given = append(in.Given, m.name)
		}
	}
	return in
}

// Reconstruct implements decide.Payload.
func (p *ChangeInstrument) Reconstruct(r *decide.Evidence) error {
	var in changeInstrumentInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	e, ok := decide.EventOf[*InstrumentChanged](r)
	if !ok {
		return nil
	}
	p.Symbol = e.Symbol
	for _, m := range instrumentMembers {
		if slices.Contains(in.Given, m.name) {
			m.take(p, &e.Instrument)
		}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *DelistInstrument) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*InstrumentDelisted](r); ok {
		p.Symbol = e.Symbol
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *SetIndexPrice) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*IndexUpdated](r); ok {
		p.Symbol, p.Price = e.Symbol, e.IndexPrice
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *MakeDeposit) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*DepositCompleted](r); ok {
		*p = MakeDeposit{CustomerCode: e.CustomerCode, Currency: e.Currency, Amount: e.Amount, ReferenceID: givenName(e.ReferenceID, e.Code)}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *DepositInsurance) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*InsuranceDeposited](r); ok {
		p.Amount, p.ReferenceID = e.Amount, givenName(e.ReferenceID, e.Code)
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *RequestWithdrawal) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WithdrawalRequested](r); ok {
		*p = RequestWithdrawal{CustomerCode: e.CustomerCode, Currency: e.Currency, Amount: -e.Amount, ReferenceID: givenName(e.ReferenceID, e.Code)}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CompleteWithdrawal) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WithdrawalCompleted](r); ok {
		p.Code = e.Code
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CancelWithdrawal) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WithdrawalCanceled](r); ok {
		p.Code = e.Code
	}
	return nil
}

// setFeeProfileInput is the input of SetFeeProfile.
type setFeeProfileInput struct {
	Operator bool `json:"operator,omitzero"`
}

// NewInput implements decide.Partial.
func (*SetFeeProfile) NewInput() any { return new(setFeeProfileInput) }

func (p *SetFeeProfile) input([]decide.Event) any { return setFeeProfileInput{p.Operator} }

// Reconstruct implements decide.Payload.
func (p *SetFeeProfile) Reconstruct(r *decide.Evidence) error {
	var in setFeeProfileInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	p.Operator = in.Operator
	if e, ok := decide.EventOf[*FeeProfileSet](r); ok {
		p.CustomerCode, p.Symbol, p.MakerFee, p.TakerFee = e.CustomerCode, e.Symbol, e.MakerFee, e.TakerFee
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *SetMarginProfile) Reconstruct(r *decide.Evidence) error {
	e, ok := decide.EventOf[*MarginProfileSet](r)
	if !ok {
		return nil
	}
	if p.CustomerCode, p.Leverage = e.CustomerCode, e.Leverage; e.Leverage == 0 {
		p.InitialMargin, p.MaintenanceMargin = e.InitialMargin, e.MaintenanceMargin
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *SetLeverage) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*LeverageChanged](r); ok {
		p.CustomerCode, p.Symbol, p.Leverage = e.CustomerCode, e.Symbol, e.Leverage
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *OpenSession) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*SessionOpened](r); ok {
		*p = OpenSession{Session: e.Session, Gateway: e.Gateway, Username: e.Username, Broker: e.Broker}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *KeepGateway) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*GatewaySeen](r); ok {
		p.Gateway = e.Gateway
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *EndSession) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*SessionEnded](r); ok {
		p.Session = e.Session
	}
	return nil
}
