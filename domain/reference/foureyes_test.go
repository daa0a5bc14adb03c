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
	give := func(by decide.Actor, p decide.Payload) {
		c.give(by, decide.Metadata{Fingerprint: "p"}, p)
		c.drain()
	}
	for rules := c.state.ActiveRules() + 1; rules <= trading.Rules().Newest(); rules++ {
		give(operator, &decide.ActivateRules{Rules: rules})
	}
	last := func() *decide.ProposalMade {
		all := c.state.Proposals()
		return &all[len(all)-1].ProposalMade
	}
	propose := func(p decide.Payload) *decide.ProposalMade {
		give(operator, p)
		return last()
	}
	threshold := fixed.Decimal{Coef: 5}
	give(operator, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600, Rules: []decide.PolicyRule{
		{Action: trading.CommandMakeDeposit, Threshold: &threshold}, {Action: trading.CommandSetFeeProfile}}}})
	deposit := func(amount fixed.Money) *trading.MakeDeposit {
		return &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: amount}
	}
	give(operator, deposit(4*fixed.Unit))
	one, two := propose(deposit(5*fixed.Unit)), propose(deposit(6*fixed.Unit))
	fees := propose(&trading.SetFeeProfile{CustomerCode: code, Symbol: c.products[0].Symbol, MakerFee: decimal("-0.25"), TakerFee: decimal("3"), Operator: true})
	give(olga, &decide.ConfirmProposal{ID: one.ID})
	give(olga, &decide.ConfirmProposal{ID: two.ID}) // voided
	give(olga, &decide.ConfirmProposal{ID: fees.ID})
	give(olga, &decide.RejectProposal{ID: propose(deposit(7 * fixed.Unit)).ID, Reason: "no receipt"})
	give(operator, &decide.WithdrawProposal{ID: propose(deposit(8 * fixed.Unit)).ID})
	off := propose(&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600}})
	give(olga, &decide.ConfirmProposal{ID: off.ID})
	if c.auditor.Seen.Confirmed != 3 || c.state.Policy().Rules != nil && len(c.state.Policy().Rules) > 0 {
		c.t.Errorf("%d proposals were confirmed: %v", c.auditor.Seen.Confirmed, c.answers)
	}
}
