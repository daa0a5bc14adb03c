package onboarding_test

import (
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// newest puts the newest rules in force.
func (l *log) newest() {
	l.t.Helper()
	for rules := l.state.ActiveRules() + 1; rules <= onboarding.Rules().Newest(); rules++ {
		l.must(operator, &decide.ActivateRules{Rules: rules})
	}
}

// governedOwners returns a log with owners, the newest rules, and a policy with these actions.
func governedOwners(t *testing.T, actions ...string) *log {
	l := owners(t)
	l.newest()
	policy := decide.Policy{ProposalSeconds: 3600}
	for _, a := range actions {
		policy.Rules = append(policy.Rules, decide.PolicyRule{Action: a})
	}
	l.must(operator, &decide.SetPolicy{Policy: policy})
	return l
}

// proposal returns the id of the newest proposal.
func (l *log) proposal() scalar.ID {
	all := l.state.Proposals()
	return all[len(all)-1].ID
}

// TestDecisionsOfTwo: decisions on a trigger and about an owner take effect with a second person, unless the evidence has changed.
func TestDecisionsOfTwo(t *testing.T) {
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	l := governedOwners(t, "entitlement_trigger.approve", "owner.erase", "retention.set", "due.put_back")
	trigger := l.trigger(define(entitlement.Manual))
	l.steps()
	confirm := func(by decide.Actor) string { return l.do(by, &decide.ConfirmProposal{ID: l.proposal()}) }
	changed := &onboarding.ChangeOwner{Ref: ann, Revision: 1, ExternalID: hmac("other"), Fields: sealed()}
	for n, tt := range []struct {
		what string
		got  func() string
		want string
	}{
		{"another action needs one person", func() string { return l.do(operator, act(trigger, entitlement.Block)) }, "entitlement_trigger.moved"},
		{"what the rules refuse is not proposed", func() string { return l.do(operator, act(trigger, entitlement.Approve)) }, "TRANSITION_NOT_ALLOWED"},
		{"its end too", func() string { return l.do(operator, act(trigger, entitlement.Release)) }, "entitlement_trigger.moved"},
		{"an approval is proposed", func() string { return l.do(operator, act(trigger, entitlement.Approve)) }, "proposal.made"},
		{"not by oneself", func() string { return confirm(operator) }, "SELF_APPROVAL"},
		{"not by a client's user without a name", func() string { return confirm(decide.Actor{Broker: "venue"}) }, "FORBIDDEN"},
		{"the owner changes", func() string { return l.do(alpha, changed) }, "owner.changed"},
		{"so the proposal is void", func() string { return confirm(olga) }, "proposal.voided"},
		{"for good", func() string { return confirm(olga) }, "PROPOSAL_NOT_OPEN"},
		{"again", func() string { return l.do(operator, act(trigger, entitlement.Approve)) }, "proposal.made"},
		{"an answer that concerns another owner", func() string { return l.do(operator, &onboarding.HoldOwner{Ref: bob, Reason: sealed()}) }, "owner.held"},
		{"is no evidence", func() string { return confirm(olga) }, "entitlement_trigger.moved notice.given proposal.confirmed"},
		{"an erasure", func() string { return l.do(olga, &onboarding.EraseOwner{Ref: ann, Reason: sealed()}) }, "proposal.made"},
		{"by two", func() string { return confirm(operator) }, "owner.restricted proposal.confirmed"},
		{"a shorter retention", func() string { return l.do(olga, &onboarding.SetRetention{Seconds: 1}) }, "proposal.made"},
		{"expires", func() string { l.now += scalar.Hour; return confirm(operator) }, "PROPOSAL_EXPIRED"},
		{"the system needs no other", func() string { return l.do(decide.Actor{System: "tool"}, &onboarding.SetRetention{Seconds: 1}) }, "retention.set"},
	} {
		if got := tt.got(); got != tt.want {
			t.Fatalf("%d: %s: %s, and not %s", n, tt.what, got, tt.want)
		}
	}
	if x, _ := l.state.Erasure(ann); x.RequestedBy != "olga" {
		t.Errorf("the erasure was requested by %s", x.RequestedBy)
	}
}

// TestEvidenceOfErasure: a proposed erasure is void after another retention and after a change of one of the owner's triggers,
// and what one person changes of another owner or of an entitlement is no evidence.
func TestEvidenceOfErasure(t *testing.T) {
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	const erased = "entitlement_trigger.moved notice.given owner.restricted proposal.confirmed"
	for name, tt := range map[string]struct {
		change func(trigger scalar.ID) decide.Payload
		want   string
	}{
		"retention":   {func(scalar.ID) decide.Payload { return &onboarding.SetRetention{Seconds: 1} }, "proposal.voided"},
		"trigger":     {func(id scalar.ID) decide.Payload { return act(id, entitlement.Block) }, "proposal.voided"},
		"hold":        {func(scalar.ID) decide.Payload { return &onboarding.HoldOwner{Ref: ann, Reason: sealed()} }, "proposal.voided"},
		"other owner": {func(scalar.ID) decide.Payload { return &onboarding.HoldOwner{Ref: bob, Reason: sealed()} }, erased},
		"entitlement": {func(scalar.ID) decide.Payload { return define(entitlement.Manual) }, erased},
	} {
		t.Run(name, func(t *testing.T) {
			l := governedOwners(t, "owner.erase")
			trigger := l.trigger(define(entitlement.Manual))
			l.must(operator, &onboarding.EraseOwner{Ref: ann, Reason: sealed()})
			id := l.proposal()
			l.must(operator, tt.change(trigger))
			if got := l.do(olga, &decide.ConfirmProposal{ID: id}); got != tt.want {
				t.Errorf("the erasure is %s, and not %s", got, tt.want)
			}
		})
	}
}

// TestProposalsAboutARestrictedOwner: what was proposed before an owner is restricted changes nothing of it afterward.
func TestProposalsAboutARestrictedOwner(t *testing.T) {
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	l := governedOwners(t, "entitlement_trigger.block")
	l.must(operator, act(l.trigger(define(entitlement.Manual)), entitlement.Block))
	id := l.proposal()
	l.must(operator, erase(ann))
	if got := l.do(olga, &decide.ConfirmProposal{ID: id}); got != "proposal.voided" {
		t.Error(got)
	}
}

// TestEntitlementsOfTwo: nobody alone defines or changes an entitlement under a policy.
func TestEntitlementsOfTwo(t *testing.T) {
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	l := governedOwners(t, "entitlement.create", "entitlement.change")
	if got := l.do(operator, define(entitlement.Manual)); got != "proposal.made" {
		t.Fatal(got)
	}
	if got := l.do(olga, &decide.ConfirmProposal{ID: l.proposal()}); got != "entitlement.created proposal.confirmed" {
		t.Fatal(got)
	}
	newest, _ := l.state.Entitlements(0, 1)
	id, automatic := newest[0].ID, entitlement.Automatic
	change := &onboarding.ChangeEntitlement{ID: id, Approval: &automatic}
	for range 2 {
		if got := l.do(operator, change); got != "proposal.made" {
			t.Fatal(got)
		}
	}
	all := l.state.Proposals()
	for n, want := range []string{"entitlement.changed proposal.confirmed", "proposal.voided"} {
		if got := l.do(olga, &decide.ConfirmProposal{ID: all[len(all)-2+n].ID}); got != want {
			t.Errorf("%s, and not %s", got, want)
		}
	}
	if e, _ := l.state.Entitlement(id); e.Approval != entitlement.Automatic || e.Name != define(entitlement.Manual).Name {
		t.Errorf("the entitlement is %+v", e)
	}
}

// TestPutBackOfTwo: due work is put back by two persons, unless it failed again or was put back.
func TestPutBackOfTwo(t *testing.T) {
	olga := decide.Actor{Sub: "olga", Broker: "venue"}
	l := governedOwners(t, "due.put_back")
	l.must(operator, define(entitlement.Manual))
	l.must(alpha, &onboarding.CreateTrigger{Ref: ann, EntitlementID: l.made()})
	l.fold(decide.Recorded{Actor: decide.Engine, Type: "engine.step"}, l.state.SetAside(l.stamp(), "it is broken"))
	entry := l.state.SetAsideEntries()[0].Entry
	for range 2 {
		if got := l.do(operator, &decide.PutBackDue{Entry: entry}); got != "proposal.made" {
			t.Fatal(got)
		}
	}
	all := l.state.Proposals()
	if got := l.do(olga, &decide.ConfirmProposal{ID: all[0].ID}); got != "due.put_back proposal.confirmed" {
		t.Fatal(got)
	}
	if got := l.do(olga, &decide.ConfirmProposal{ID: all[1].ID}); got != "proposal.voided" {
		t.Fatal(got)
	}
	if len(l.state.SetAsideEntries()) != 0 {
		t.Error("it is still set aside")
	}
}

// TestOldRulesHaveNoPolicies: a journal by earlier rules refuses policies, so that earlier builds can read it.
func TestOldRulesHaveNoPolicies(t *testing.T) {
	l := owners(t)
	for _, p := range []decide.Payload{&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 60}}, &decide.ConfirmProposal{}, &decide.RejectProposal{}, &decide.WithdrawProposal{}} {
		if got := l.do(operator, p); l.state.ActiveRules() < 5 && got != "FOUR_EYES_NOT_IN_FORCE" {
			t.Errorf("%s: %s", p.CommandType(), got)
		}
	}
}

// TestManyProposals: a state keeps so many proposals, and refuses another one if all are open.
func TestManyProposals(t *testing.T) {
	l := governedOwners(t, "retention.set")
	propose := func() string { return l.do(operator, &onboarding.SetRetention{Seconds: 1}) }
	for range decide.MaxProposals {
		if got := propose(); got != "proposal.made" {
			t.Fatal(got)
		}
	}
	if got := propose(); got != "TOO_MANY_PROPOSALS" {
		t.Errorf("one more: %s", got)
	}
	second := l.state.Proposals()[1].ID
	l.must(operator, &decide.WithdrawProposal{ID: second})
	if got := propose(); got != "proposal.made" {
		t.Errorf("after one has ended: %s", got)
	}
	all := l.state.Proposals()
	if len(all) != decide.MaxProposals || slices.ContainsFunc(all, func(p decide.Proposal) bool { return p.ID == second }) {
		t.Errorf("%d proposals", len(all))
	}
	l.now += scalar.Hour // all have expired
	if got := propose(); got != "proposal.made" {
		t.Errorf("after all have expired: %s", got)
	}
}
