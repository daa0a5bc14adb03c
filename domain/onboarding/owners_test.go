package onboarding_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
)

func TestRegisteringOwners(t *testing.T) {
	l := newLog(t)
	without := register(ann, "ann")
	without.ExternalID = nil
	empty := register(ann, "ann")
	empty.Fields = nil
	long := register(ann, "ann")
	long.Fields = make(onboarding.Sealed, onboarding.MaxFields+1)
	l.run([]expect{
		{"of no type", alpha, register(owner.Ref{Type: "dog", ID: id(1)}, "x"), "INVALID_OWNER"},
		{"without an id", alpha, register(owner.Ref{Type: owner.PersonType}, "x"), "INVALID_OWNER"},
		{"without an external id", alpha, without, "INVALID_EXTERNAL_ID"},
		{"without fields", alpha, empty, "INVALID_FIELDS"},
		{"with too much", alpha, long, "INVALID_FIELDS"},
		{"by nobody's client", decide.Actor{System: "bridge"}, register(ann, "ann"), "FORBIDDEN"},
		{"a person", alpha, register(ann, "ann"), "owner.registered"},
		{"with an id that is there", beta, register(ann, "x"), "OWNER_ID_TAKEN"},
		{"with an external id that is there", alpha, register(bob, "ann"), "EXTERNAL_ID_TAKEN"},
		{"which another tenant may use", beta, register(bob, "ann"), "owner.registered"},
		{"and a corporate", alpha, register(corp, "ann"), "owner.registered"},
	})
	if o, known := l.state.Owner(ann); !known || o.Tenant != "alpha" || o.State != owner.Active || o.Revision != 1 || o.Created != start {
		t.Errorf("%+v", o)
	}
	if _, known := l.state.Owner(owner.Ref{Type: owner.CorporateType, ID: ann.ID}); known {
		t.Error("a person is found as a corporate")
	}
	l.replayed()
}

func change(ref owner.Ref, revision int64, name string) *onboarding.ChangeOwner {
	return &onboarding.ChangeOwner{Ref: ref, Revision: revision, ExternalID: hmac(name), Fields: sealed()}
}

func TestChangingOwners(t *testing.T) {
	l := owners(t)
	l.must(alpha, register(owner.Ref{Type: owner.PersonType, ID: id(4)}, "dan"))
	l.now++
	l.run([]expect{
		{"nobody", alpha, change(ghost, 1, "x"), "PERSON_NOT_FOUND"},
		{"another tenant's", beta, change(ann, 1, "x"), "PERSON_NOT_FOUND"},
		{"another tenant's corporate", beta, change(corp, 1, "x"), "CORPORATE_NOT_FOUND"},
		{"to another's external id", alpha, change(ann, 1, "dan"), "EXTERNAL_ID_TAKEN"},
		{"to nothing", alpha, &onboarding.ChangeOwner{Ref: ann, Revision: 1, ExternalID: hmac("a")}, "INVALID_FIELDS"},
		{"with its own", alpha, change(ann, 1, "ann"), "owner.changed"},
		{"from what was there before", alpha, change(ann, 1, "ann"), "OWNER_CHANGED"},
		{"to another external id", alpha, change(ann, 2, "eve"), "owner.changed"},
		{"so that the old one is free", alpha, change(owner.Ref{Type: owner.PersonType, ID: id(4)}, 1, "ann"), "owner.changed"},
	})
	if o, _ := l.state.Owner(ann); o.Revision != 3 || o.Created != start || o.Updated != start+1 {
		t.Errorf("%+v", o)
	}
	l.replayed()
}

func TestWhatEveryJournalTakes(t *testing.T) {
	l := newLog(t)
	if got := l.keyed(alpha, "k", register(ann, "ann")); got != "owner.registered" {
		t.Fatal(got)
	}
	if got := l.keyed(alpha, "k", register(ann, "ann")); got != "repeat 1" {
		t.Error(got)
	}
	if got := l.keyed(alpha, "k", register(bob, "bob")); got != decide.CodeKeyReused {
		t.Error(got)
	}
	l.run([]expect{
		{"unknown rules", operator, &decide.ActivateRules{Rules: onboarding.Rules().Newest() + 1}, "RULES_NOT_SUPPORTED"},
		{"due work that is not there", operator, &decide.PutBackDue{Entry: "x/y"}, "UNKNOWN_DUE_ENTRY"},
	})
	if _, err := l.state.Decide(l.stamp(), decide.Command{Type: "owner.change", Actor: alpha, Payload: register(ann, "a")}); err == nil {
		t.Error("a payload under another command's type is taken")
	}
	for _, kind := range onboarding.Payloads().Types() {
		if p, known := onboarding.Payloads().New(kind); !known || p.CommandType() != kind {
			t.Errorf("%s is made as %T", kind, p)
		}
	}
	l.replayed()
}
