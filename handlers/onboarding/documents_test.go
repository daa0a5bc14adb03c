package onboarding_test

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// refOf returns the owner that a path is of.
func (h *house) refOf(path string) owner.Ref {
	h.T.Helper()
	parts := strings.Split(strings.TrimPrefix(path, api+"/"), "/")
	id, err := scalar.ParseID(parts[1])
	if err != nil {
		h.T.Fatal(err)
	}
	return owner.Ref{Type: owner.Type(strings.TrimSuffix(parts[0], "s")), ID: id}
}

// addDocument tells the journal of a document of an owner's.
func (h *house) addDocument(path string) scalar.ID {
	h.T.Helper()
	of, tenant := h.refOf(path), ""
	h.Onboarding.View(func(s decide.State, _ record.Position) {
		if o, known := s.(*onboarding.State).Owner(of); known {
			tenant = o.Tenant
		}
	})
	p := &onboarding.AddDocument{Ref: of, ID: operation.NewID(), Category: "generic", Orientation: document.Undetermined, Name: onboarding.Sealed("x"), Source: "s",
		SHA256: make([]byte, 32), Size: 1, Format: format.PDF}
	c := decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: decide.Actor{Sub: "somebody", Broker: tenant}, Payload: p}
	if _, err := h.Submit(h.T.Context(), "onboarding", c); err != nil {
		h.T.Fatal(err)
	}
	return p.ID
}
