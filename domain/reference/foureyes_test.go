package reference_test

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// fourEyes turns a policy on, gives each command about proposals, and turns the policy off.
func (c *crowd) fourEyes(code string) {
	c.t.Helper()
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	last := func() *decide.ProposalMade {
		all := c.state.Proposals()
		return &all[len(all)-1].ProposalMade
	}
	propose := func(p decide.Payload) *decide.ProposalMade {
		c.give(operator, decide.Metadata{Fingerprint: "p"}, p)
		return last()
	}
	threshold := fixed.Decimal{Coef: 5}
	c.give(operator, decide.Metadata{}, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600, Rules: []decide.PolicyRule{
		{Action: trading.CommandMakeDeposit, Threshold: &threshold}, {Action: trading.CommandSetFeeProfile}}}})
	deposit := func(amount fixed.Money) *trading.MakeDeposit {
		return &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: amount}
	}
	c.give(operator, decide.Metadata{}, deposit(4*fixed.Unit))
	one, two := propose(deposit(5*fixed.Unit)), propose(deposit(6*fixed.Unit))
	fees := propose(&trading.SetFeeProfile{CustomerCode: code, Symbol: c.products[0].Symbol, MakerFee: decimal("-0.25"), TakerFee: decimal("3"), Operator: true})
	c.give(olga, decide.Metadata{}, &decide.ConfirmProposal{ID: one.ID})
	c.give(olga, decide.Metadata{}, &decide.ConfirmProposal{ID: two.ID}) // voided
	c.give(olga, decide.Metadata{}, &decide.ConfirmProposal{ID: fees.ID})
	c.give(olga, decide.Metadata{}, &decide.RejectProposal{ID: propose(deposit(7 * fixed.Unit)).ID})
	c.give(operator, decide.Metadata{}, &decide.WithdrawProposal{ID: propose(deposit(8 * fixed.Unit)).ID})
	off := propose(&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600}})
	c.give(olga, decide.Metadata{}, &decide.ConfirmProposal{ID: off.ID})
	if c.auditor.Seen.Confirmed != 3 || c.state.Policy().Rules != nil && len(c.state.Policy().Rules) > 0 {
		c.t.Errorf("%d proposals were confirmed: %v", c.auditor.Seen.Confirmed, c.answers)
	}
}
