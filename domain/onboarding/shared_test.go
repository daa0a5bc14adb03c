package onboarding

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestTheStateSharesNothingWithEvents changes events after they were applied, which nobody does: others read them.
func TestTheStateSharesNothingWithEvents(t *testing.T) {
	ref := owner.Ref{Type: owner.PersonType, ID: scalar.ID{1}}
	o := &OwnerRegistered{Owner: Owner{Ref: ref, Tenant: "t", ExternalID: []byte("hmac")}}
	d := &DocumentAdded{Document: Document{ID: scalar.ID{2}, Ref: ref, SHA256: []byte("hash")}}
	s := NewState()
	s.Evolve(decide.Stamp{}, decide.Recorded{}, decide.Accepted, []decide.Event{o, d})
	o.Tenant, o.ExternalID[0], d.SHA256[0], d.Category = "x", 'x', 'x', "x"
	if got, _ := s.Owner(ref); got.Tenant != "t" || string(got.ExternalID) != "hmac" {
		t.Errorf("%+v", got)
	}
	if got, _ := s.Document(scalar.ID{2}); string(got.SHA256) != "hash" || got.Category != "" {
		t.Errorf("%+v", got)
	}
}
