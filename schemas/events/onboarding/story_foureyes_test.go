package onboarding_test

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// fourEyes proposes each kind of action that a policy may name, and confirms it.
func (s *story) fourEyes() {
	s.t.Helper()
	s.activate(onboarding.Rules().Newest())
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	policy := decide.Policy{ProposalSeconds: 3600}
	for _, a := range s.state.Governed().Actions() {
		policy.Rules = append(policy.Rules, decide.PolicyRule{Action: a.Name})
	}
	s.do(operator, &decide.SetPolicy{Policy: policy})
	propose := func(p decide.Payload) *decide.ConfirmProposal {
		s.do(operator, p)
		return &decide.ConfirmProposal{ID: made[*decide.ProposalMade](s).ID}
	}
	confirm := func(p decide.Payload) { s.do(olga, propose(p)) }

	one := owner.Ref{Type: owner.PersonType, ID: id(44)}
	s.do(client, &onboarding.RegisterOwner{Ref: one, ExternalID: hash('4'), Fields: sealed()})
	confirm(&onboarding.CreateEntitlement{Name: "With two", OwnerType: owner.PersonType, Approval: entitlement.Manual})
	with := made[*onboarding.EntitlementCreated](s).ID
	no, none := false, int64(0)
	confirm(&onboarding.ChangeEntitlement{ID: with, Questionnaires: []entitlement.Item{}, VideoIdentification: &no, DeadlineSeconds: &none})
	s.do(client, &onboarding.CreateTrigger{Ref: one, EntitlementID: with})
	trigger := made[*onboarding.TriggerCreated](s).ID
	s.step()
	act := func(a entitlement.Action) *onboarding.ActOnTrigger {
		return &onboarding.ActOnTrigger{ID: trigger, Action: a, Code: "CHECKED", Reason: sealed(), InternalReason: sealed()}
	}
	confirm(act(entitlement.RequestVideoIdentification))
	video := act(entitlement.CompleteVideoIdentification)
	video.Outcome, video.ExternalReference = onboarding.Passed, sealed()
	confirm(video)
	late := propose(act(entitlement.Approve))
	s.do(client, &onboarding.ChangeOwner{Ref: one, Revision: 1, ExternalID: hash('5'), Fields: sealed()})
	s.do(olga, late) // voided
	confirm(act(entitlement.Approve))

	s.do(operator, &onboarding.HoldOwner{Ref: one, Reason: sealed()})
	confirm(&onboarding.ReleaseOwner{Ref: one, Reason: sealed()})
	confirm(&onboarding.SetRetention{Seconds: 60})
	confirm(&onboarding.EraseOwner{Ref: one, Reason: sealed()})
	s.do(olga, &decide.RejectProposal{ID: propose(&onboarding.SetRetention{Seconds: 61}).ID, Reason: "AQABAgMgYSBjaXBoZXJ0ZXh0"})
	s.do(operator, &decide.WithdrawProposal{ID: propose(&onboarding.SetRetention{Seconds: 61}).ID})
	confirm(&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600}})
}

// lateAttempt has a registration deleted during an attempt of a delivery.
func (s *story) lateAttempt() {
	s.do(client, &onboarding.CreateWebhook{ID: id(22), URL: "https://receiver.example/late", All: true, Key: key("late", 7)})
	s.do(client, &onboarding.TestWebhook{ID: id(22)})
	sent := made[*onboarding.DeliveryCreated](s).ID
	s.do(client, &onboarding.DeleteWebhook{ID: id(22)})
	s.do(system, &onboarding.RecordAttempt{ID: sent, Number: 1, Started: s.at.Time - scalar.Second, DurationMS: 250, StatusCode: 200, Reply: sealed()})
}
