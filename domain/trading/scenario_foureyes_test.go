package trading

import (
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// reason reads the reason of the end of a proposal, if there is one.
func (s *scenario) reason() string {
	if s.accept("because") {
		return s.word()
	}
	return ""
}

// policyPayload: policy [ACTION|ACTION>=AMOUNT]… [open SPAN]
func (s *scenario) policyPayload() *decide.SetPolicy {
	p := &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: decide.DefaultProposalSeconds}}
	for len(s.words) > 0 && s.words[0] != "person" {
		if s.accept("open") {
			p.ProposalSeconds = int(s.span(s.word()) / scalar.Second)
			continue
		}
		action, amount, measured := strings.Cut(s.word(), ">=")
		rule := decide.PolicyRule{Action: action}
		if measured {
			threshold := s.decimal(amount)
			rule.Threshold = &threshold
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// proposalIs holds what the last command made of a proposal against what the scenario says.
func (s *scenario) proposalIs(want string) {
	if s.err != nil {
		s.t.Fatalf("the command was refused: %v", s.err)
	}
	got := "nothing"
	for _, e := range s.last.Events {
		switch e.(type) {
		case *decide.ProposalMade:
			got = "proposed"
		case *decide.ProposalConfirmed:
			got = "confirmed"
		case *decide.ProposalRejected:
			got = "rejected-proposal"
		case *decide.ProposalWithdrawn:
			got = "withdrawn"
		case *decide.ProposalVoided:
			got = "voided"
		}
	}
	s.same("the proposal", got, want)
}

// proposalsAre: proposals N: how many are open
func (s *scenario) proposalsAre() {
	open := 0
	for _, p := range s.state.Proposals() {
		if p.StatusAt(s.now) == decide.StatusOpen {
			open++
		}
	}
	s.same("open proposals", strconv.Itoa(open), s.word())
}
