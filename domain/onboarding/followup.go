package onboarding

import (
	"cmp"
	"encoding/hex"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The methods in this file return the work outside the journal that follows from its records. Process managers do that
// work.

// TradingAccount is the account that a finished entitlement opens for its owner.
type TradingAccount struct {
	owner.Ref
	Tenant   string
	Sequence int64 // of the record that finished the entitlement's trigger
}

// CustomerCode returns the code of the owner's trading account: the owner's id without hyphens. The code reveals nothing
// else about the owner.
func CustomerCode(id scalar.ID) string { return hex.EncodeToString(id[:]) }

// TradingAccounts returns the accounts that finished entitlements open for active owners, at most one for each owner, in
// the order of the finishing records. The trading journal shows which of them exist already.
func (s *State) TradingAccounts() []TradingAccount {
	var out []TradingAccount
	for _, id := range s.ownerOrder {
		for _, t := range s.owners[id].triggers {
			if a, opens := s.opens(t); opens {
				out = append(out, a)
				break // one trigger of each owner suffices
			}
		}
	}
	slices.SortFunc(out, func(a, b TradingAccount) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return out
}

// TradingAccount returns the account that a trigger opens for its owner. It returns false if the trigger opens none or
// the owner is no longer active.
func (s *State) TradingAccount(trigger scalar.ID) (TradingAccount, bool) {
	t, known := s.Trigger(trigger)
	if !known {
		return TradingAccount{}, false
	}
	return s.opens(t)
}

func (s *State) opens(t *Trigger) (TradingAccount, bool) {
	o := s.owners[t.Ref.ID].owner
	return TradingAccount{Ref: t.Ref, Tenant: o.Tenant, Sequence: t.Moved},
		t.Result == entitlement.Success && t.Terms.OpensTradingAccount && o.State == owner.Active
}

// KeysToDestroy returns the erased owners for which the destruction of the key is not confirmed.
func (s *State) KeysToDestroy() []owner.Ref {
	var out []owner.Ref
	for _, id := range s.ownerOrder {
		if f := s.owners[id]; f.owner.State == owner.Erased && f.erasure.KeyID == "" {
			out = append(out, f.owner.Ref)
		}
	}
	return out
}

// FirstOwners returns at most n owners, oldest first.
func (s *State) FirstOwners(n int) []owner.Ref {
	var out []owner.Ref
	for _, id := range s.ownerOrder[:min(n, len(s.ownerOrder))] {
		out = append(out, s.owners[id].owner.Ref)
	}
	return out
}

// OldestOwner returns the time at which the first owner was registered. It is false if there is none.
func (s *State) OldestOwner() (at scalar.Time, known bool) {
	if len(s.ownerOrder) == 0 {
		return 0, false
	}
	return s.owners[s.ownerOrder[0]].owner.Created, true
}

// HeldOwners returns the owners that are held.
func (s *State) HeldOwners() []owner.Ref {
	var out []owner.Ref
	for _, id := range s.ownerOrder {
		if f := s.owners[id]; f.held {
			out = append(out, f.owner.Ref)
		}
	}
	return out
}

// Files returns the blob store keys of the sealed files of an owner.
func (s *State) Files(ref owner.Ref) []string {
	f, known := s.owners[ref.ID]
	if !known || f.owner.Ref != ref {
		return nil
	}
	out := make([]string, len(f.documents))
	for i, id := range f.documents {
		out[i] = s.documents[id].Source
	}
	return out
}
