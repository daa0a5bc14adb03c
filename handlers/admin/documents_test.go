package admin_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestDocuments: an operator says what a document is for and when it ends, and its tenant is reminded of that.
func TestDocuments(t *testing.T) {
	d := newDesk(t)
	ann := d.owner("alpha", owner.PersonType, 1)
	file := scalar.ID{5, 15: 1}
	d.submit(client("alpha"), &onboarding.AddDocument{Ref: ann, ID: file, Category: "undetermined", Orientation: "front", Name: d.sealed(`"passport.png"`, seal.DocumentName(ann, file)),
		Source: "documents/1", SHA256: make([]byte, 32), Size: 1, Format: format.PNG})
	one := base + "/persons/" + ann.ID.String() + "/documents/" + file.String()
	changed := d.Send("operator", "PATCH", one, `{"category":"id_document","valid_until":"2026-04-20T00:00:00Z"}`, "Idempotency-Key", "k").Want(200)
	want(t, changed, "category", "id_document", "valid_until", "2026-04-20T00:00:00.000000Z", "name", "passport.png", "orientation", "front", "owner_id", ann.ID.String())
	want(t, d.Send("operator", "PATCH", one, `{"category":"poa"}`).Want(200), "category", "poa", "valid_until", "2026-04-20T00:00:00.000000Z")
	if again := d.Send("operator", "PATCH", one, `{"category":"id_document","valid_until":"2026-04-20T00:00:00Z"}`, "Idempotency-Key", "k").Want(200); again.Body != changed.Body {
		t.Errorf("again %s, first %s", again.Body, changed.Body)
	}
	want(t, d.Send("auditor", "GET", one, "").Want(200), "category", "poa", "name", "passport.png")
	d.Send("operator", "PATCH", one, `{"category":"poa"}`).Code(409, "NOTHING_CHANGED")
	want(t, d.Send("operator", "PATCH", one, `{"valid_until":null,"category":"bank_statment"}`).Want(200), "category", "bank_statement", "valid_until", "") //nolint:misspell // as the interface was first published
	for body, faults := range map[string]int{`{}`: 1, `{"category":"poem","valid_until":"soon","name":"x"}`: 3, `{"category":7}`: 1} {
		if got := d.Send("operator", "PATCH", one, body).Want(400).Faults(); len(got) != faults {
			t.Errorf("%s: faults %v", body, got)
		}
	}
	d.Send("operator", "PATCH", base+"/persons/"+ann.ID.String()+"/documents/"+scalar.ID{9}.String(), `{"category":"poa"}`).Code(404, "DOCUMENT_NOT_FOUND")
	d.Send("operator", "PATCH", base+"/corporates/"+ann.ID.String()+"/documents/"+file.String(), `{"category":"poa"}`).Code(404, "CORPORATE_NOT_FOUND")
	d.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	d.Send("operator", "PATCH", one, `{"category":"cv"}`).Code(409, "OWNER_RESTRICTED")
	d.Send("auditor", "PATCH", one, `{"category":"cv"}`).Code(403, "FORBIDDEN")
}

// TestADocumentThatHasNoRowYet is changed by who knows of it from the log; that it can't be shown is no fault of the server.
func TestADocumentThatHasNoRowYet(t *testing.T) {
	d := newDesk(t)
	ann, file := d.owner("alpha", owner.PersonType, 1), scalar.ID{5, 15: 1}
	release := d.HoldRows()
	d.submit(client("alpha"), &onboarding.AddDocument{Ref: ann, ID: file, Category: "undetermined", Orientation: "front", Name: d.sealed(`"passport.png"`, seal.DocumentName(ann, file)),
		Source: "documents/1", SHA256: make([]byte, 32), Size: 1, Format: format.PNG})
	one := base + "/persons/" + ann.ID.String() + "/documents/" + file.String()
	d.Send("operator", "PATCH", one, `{"category":"poa"}`, "Idempotency-Key", "k").Code(503, "SOURCE_UNAVAILABLE")
	release()
	want(t, d.Send("operator", "PATCH", one, `{"category":"poa"}`, "Idempotency-Key", "k").Want(200), "category", "poa", "name", "passport.png")
}
