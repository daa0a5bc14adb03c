package onboarding_test

import (
	"reflect"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestTradingAccounts: an account is opened by a trigger that finishes with success, of a definition that says so, for an
// owner who is active; of several, one.
func TestTradingAccounts(t *testing.T) {
	l := owners(t)
	opening := define(entitlement.Manual)
	opening.OpensTradingAccount = true
	rejected, other := l.trigger(opening), l.trigger(define(entitlement.Manual))
	l.must(operator, act(rejected, entitlement.Reject))
	l.must(operator, act(other, entitlement.Approve))
	first, second := l.trigger(opening), l.trigger(opening)
	if got := l.state.TradingAccounts(); len(got) != 0 {
		t.Errorf("before anything has finished: %+v", got)
	}
	l.must(operator, act(first, entitlement.Approve))
	want := onboarding.TradingAccount{Ref: ann, Tenant: "alpha", Sequence: int64(len(l.records))}
	l.must(operator, act(second, entitlement.Approve))
	if got := l.state.TradingAccounts(); !reflect.DeepEqual(got, []onboarding.TradingAccount{want}) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for trigger, opens := range map[scalar.ID]bool{first: true, rejected: false, other: false, id(77): false} {
		if got, ok := l.state.TradingAccount(trigger); ok != opens || opens && got != want {
			t.Errorf("%v opens %+v, %t", trigger, got, ok)
		}
	}
	if code := onboarding.CustomerCode(ann.ID); code != "01000000000000000000000000000001" {
		t.Errorf("the account has the code %s", code)
	}
	if got := reread(t, l.state).TradingAccounts(); !reflect.DeepEqual(got, []onboarding.TradingAccount{want}) {
		t.Errorf("saved and read back: %+v", got)
	}
	l.must(operator, erase(ann))
	if got := l.state.TradingAccounts(); len(got) != 0 {
		t.Errorf("of somebody who is restricted: %+v", got)
	}
	l.replayed()
}

// TestKeysToDestroy: from an owner's erasure until the destruction of its key is confirmed.
func TestKeysToDestroy(t *testing.T) {
	l := owners(t)
	l.must(alpha, upload(ann, 10))
	l.must(operator, &onboarding.SetRetention{})
	check := func(when string, want ...owner.Ref) {
		t.Helper()
		for _, s := range []*onboarding.State{l.state, reread(t, l.state)} {
			if got := s.KeysToDestroy(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
	}
	check("nobody is erased")
	l.must(operator, erase(ann))
	check("restricted")
	l.steps()
	check("erased", ann)
	if d, _ := l.state.Document(id(10)); !reflect.DeepEqual(l.state.Files(ann), []string{d.Source}) || l.state.Files(bob) == nil || l.state.Files(ghost) != nil {
		t.Errorf("the files are %q", l.state.Files(ann))
	}
	l.must(sender, &onboarding.ConfirmKeyDestroyed{Ref: ann, KeyID: "k"})
	check("destroyed")
}
