package trading_test

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// fourEyes proposes each action that a policy may name, and confirms it.
func (s *story) fourEyes() {
	const btc = "BTCUSDC_PERP"
	s.t.Helper()
	s.activate(5) // the later ones come with reasons, since a golden file holds a time that follows from the sequence
	policy := decide.Policy{ProposalSeconds: 3600}
	for _, a := range s.state.Governed().Actions() {
		policy.Rules = append(policy.Rules, decide.PolicyRule{Action: a.Name})
	}
	policy.Rules[0].Threshold = new(fixed.Decimal)
	s.do(decide.CommandSetPolicy, &decide.SetPolicy{Policy: policy})
	confirmed := func(p decide.Payload) []decide.Event {
		made := s.do(p.CommandType(), p).Events[0].(*decide.ProposalMade)
		return s.doAs("olga", decide.CommandConfirmProposal, &decide.ConfirmProposal{ID: made.ID}).Events
	}
	confirmed(&trading.MakeDeposit{CustomerCode: "bob", Currency: "USDC", Amount: 1000 * fixed.Unit, ReferenceID: "wire-9"})
	confirmed(&trading.DepositInsurance{Amount: fixed.Unit})
	for _, end := range []func(*trading.WithdrawalRequested) decide.Payload{
		func(w *trading.WithdrawalRequested) decide.Payload { return &trading.CompleteWithdrawal{Code: w.Code} },
		func(w *trading.WithdrawalRequested) decide.Payload { return &trading.CancelWithdrawal{Code: w.Code} },
	} {
		events := confirmed(&trading.RequestWithdrawal{CustomerCode: "bob", Currency: "USDC", Amount: fixed.Unit})
		at := slices.IndexFunc(events, func(e decide.Event) bool { return e.EventType() == "withdrawal.requested" })
		confirmed(end(events[at].(*trading.WithdrawalRequested)))
	}
	confirmed(&trading.SetFeeProfile{CustomerCode: "bob", Symbol: btc, MakerFee: dec("-0.50"), TakerFee: dec("3"), Operator: true})
	confirmed(&trading.SetMarginProfile{CustomerCode: "bob", Leverage: 10})
	confirmed(&trading.SetMarginProfile{CustomerCode: "bob", InitialMargin: dec("10"), MaintenanceMargin: dec("5.5")})
	confirmed(&trading.ListInstrument{Instrument: instrument("NEWUSDC_PERP")})
	amount, number, open, some := dec("0.002"), 10, market.Open, dec("100.0")
	change := &trading.ChangeInstrument{Symbol: "NEWUSDC_PERP", Status: &open, MinAmount: &amount, MaxAmount: &some, MaxLeverage: &number,
		FundingIntervalSeconds: ptr(7200), PriceBand: ptr(dec("6")), LimitBand: ptr(dec("21")), MakerFee: ptr(dec("0")), TakerFee: ptr(dec("4")), IndexStaleSeconds: &number}
	confirmed(change)
	confirmed(&trading.ChangeInstrument{Symbol: "NEWUSDC_PERP", InitMarginReq: ptr(dec("6.00")), MaintMarginReq: ptr(dec("3"))})
	confirmed(&trading.ChangeInstrument{Symbol: "NEWUSDC_PERP", Tiers: instrument("").Tiers})
	confirmed(&trading.DelistInstrument{Symbol: "NEWUSDC_PERP"})
	confirmed(&trading.ImportOpening{File: s.openingFile("b", opening.Line{Number: 2, CustomerCode: "bob", Currency: "USDC", Amount: dec("1")})})
	other := s.do(trading.CommandDepositInsurance, &trading.DepositInsurance{Amount: fixed.Unit}).Events[0].(*decide.ProposalMade)
	again := s.do(trading.CommandDepositInsurance, &trading.DepositInsurance{Amount: fixed.Unit}).Events[0].(*decide.ProposalMade)
	s.doAs("olga", decide.CommandRejectProposal, &decide.RejectProposal{ID: again.ID})
	confirmed(&trading.DepositInsurance{Amount: fixed.Unit})
	s.doAs("olga", decide.CommandConfirmProposal, &decide.ConfirmProposal{ID: other.ID}) // voided
	own := s.do(trading.CommandDepositInsurance, &trading.DepositInsurance{Amount: fixed.Unit}).Events[0].(*decide.ProposalMade)
	s.do(decide.CommandWithdrawProposal, &decide.WithdrawProposal{ID: own.ID})
	confirmed(&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600}})
}

// reasons ends proposals for a reason, by the newest rules.
func (s *story) reasons() {
	s.t.Helper()
	s.activate(trading.Rules().Newest())
	s.do(decide.CommandSetPolicy, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600, Rules: []decide.PolicyRule{{Action: trading.CommandDepositInsurance}}}})
	propose := func() scalar.ID {
		return s.do(trading.CommandDepositInsurance, &trading.DepositInsurance{Amount: fixed.Unit}).Events[0].(*decide.ProposalMade).ID
	}
	s.doAs("olga", decide.CommandRejectProposal, &decide.RejectProposal{ID: propose(), Reason: "The customer asked for less."})
	s.do(decide.CommandWithdrawProposal, &decide.WithdrawProposal{ID: propose(), Reason: "By mistake."})
}

func ptr[T any](v T) *T { return &v }
