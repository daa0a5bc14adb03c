package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// The insurance fund takes the positions for which a liquidation finds no buyer, and covers the losses that accounts
// end with. Its money is the venue's account "insurance". It has positions and orders like a customer, under a code
// that no customer can have. It pays no fees, is not in any ranking, and is never liquidated.
const (
	FundCode   = "insurance-fund"
	FundBroker = "venue"
)

// newFund returns the fund of a new venue.
func newFund() *account {
	none := fixed.Rate{Num: 0, Den: 1}
	return &account{code: FundCode, broker: FundBroker, initial: none, maintenance: none, transfers: make(map[string]transfer)}
}

// isFund reports whether the account is the insurance fund.
func (a *account) isFund() bool { return a.code == FundCode }

// holder returns the account of a customer or of the fund, or nil.
func (s *State) holder(code string) *account {
	if code == FundCode {
		return s.fund
	}
	return s.accounts[code]
}

// holders returns all accounts that may have positions: the customers, in the order of registration, and the fund.
func (s *State) holders() []*account {
	return append(s.registered[:len(s.registered):len(s.registered)], s.fund)
}

// depositInsurance decides a deposit to the fund.
func (r request) depositInsurance(payload *DepositInsurance) (decide.Decision, error) {
	if known, ok := r.fund.transfers[payload.ReferenceID]; ok && payload.ReferenceID != "" {
		return repeat(known.fingerprint, r.command.Metadata.Fingerprint, known.sequence)
	}
	var f validation.Errors
	if payload.Amount <= 0 {
		f.AddCode("amount", "INVALID_AMOUNT", "amount must be positive")
	}
	r.checkTransferReference(&f, payload.ReferenceID)
	if err := refuseFirst(f.List); err != nil {
		return decide.Decision{}, err
	}
	house := r.newHouseAccounts()
	events, before, _ := house.postFirst(r.State, r.at, nil, r.fund)
	external, fits := (-r.venue[ledger.External]).Plus(payload.Amount)
	balance, countable := before.Plus(payload.Amount)
	if !fits || !countable || external > maxNotional || balance > maxNotional {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Invalid, Code: "AMOUNT_ABOVE_MAXIMUM", Field: "amount", Message: "the venue cannot keep this much money"}
	}
	e := &InsuranceDeposited{Code: r.at.Derive(len(events)), Currency: currency, Amount: payload.Amount, Balance: balance,
		ReferenceID: payload.ReferenceID, Created: r.at.Time}
	if e.ReferenceID == "" {
		e.ReferenceID = e.Code.String()
	}
	e.Entries = paidToFund(e, -external)
	return accepted(append(events, e)...)
}

// paidToFund returns the postings of a deposit to the fund. external is the balance of the account for the outside after it.
func paidToFund(e *InsuranceDeposited, external fixed.Money) []ledger.Posting {
	return []ledger.Posting{
		{Account: ledger.Insurance, Type: ledger.InsuranceFund, Currency: currency, Amount: e.Amount, Balance: e.Balance},
		{Account: ledger.External, Type: ledger.InsuranceFund, Currency: currency, Amount: -e.Amount, Balance: external},
	}
}

// insuranceDeposited applies the event.
func (f *fold) insuranceDeposited(e *InsuranceDeposited) {
	if e.ReferenceID != e.Code.String() {
		f.fund.transfers[e.ReferenceID] = transfer{f.fingerprint, f.at.Sequence}
	}
	if f.importing() {
		f.fund.opened = true
	}
}

// Insurance is the insurance fund.
type Insurance struct {
	Balance   fixed.Money
	Equity    fixed.Money // balance plus unrealized profit at mark
	Positions []Position
}

// Insurance returns the insurance fund with its open positions, in the order of listing of their instruments.
func (s *State) Insurance() Insurance {
	return Insurance{Balance: s.fund.balance, Equity: s.standing(s.fund, 0, nil).Equity().Capped(), Positions: s.Positions(FundCode)}
}

// InsuranceDeposited says that the operator paid into the insurance fund.
type InsuranceDeposited struct {
	Code     scalar.ID   `json:"code"`
	Currency string      `json:"currency"`
	Amount   fixed.Money `json:"amount"`
	// Balance is the fund's balance after the deposit.
	Balance fixed.Money `json:"balance"`
	// ReferenceID is the name that the operator gave, or the code.
	ReferenceID string           `json:"reference_id"`
	Created     scalar.Time      `json:"created"`
	Entries     []ledger.Posting `json:"postings"`
}

// EventType returns "insurance.deposited".
func (*InsuranceDeposited) EventType() string { return "insurance.deposited" }

// Postings implements ledger.Posted.
func (e *InsuranceDeposited) Postings() []ledger.Posting { return e.Entries }

// BrokerOf implements ledger.Posted. The postings name no customer.
func (*InsuranceDeposited) BrokerOf(string) string { return "" }

// InsurancePaid says that the fund covered the negative balance of an account without positions.
type InsurancePaid struct {
	CustomerCode string           `json:"customer_code"`
	Broker       string           `json:"broker"`
	Amount       fixed.Money      `json:"amount"`
	Entries      []ledger.Posting `json:"postings"`
}

// EventType returns "insurance.paid".
func (*InsurancePaid) EventType() string { return "insurance.paid" }

// Postings implements ledger.Posted.
func (e *InsurancePaid) Postings() []ledger.Posting { return e.Entries }

// BrokerOf implements ledger.Posted.
func (e *InsurancePaid) BrokerOf(string) string { return e.Broker }
