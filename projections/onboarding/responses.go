package onboarding

import (
	"context"
	"iter"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Response is an owner's answers to a version of a questionnaire. Once the owner is erased it has no Answers.
type Response struct {
	domain.ResponseAdded
	Tenant   string
	Sequence int64 // of the record
}

type responseRow = projections.Row[Response]

var responses = &projections.Table[Response]{
	Name: "responses", Journal: journalName, Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[responseRow]{
		c.ID("id", func(r *responseRow) *scalar.ID { return &r.Value.ResponseAdded.ID }),
		c.ID("questionnaire_id", func(r *responseRow) *scalar.ID { return &r.Value.QuestionnaireID }),
		c.ID("questionnaire_version_id", func(r *responseRow) *scalar.ID { return &r.Value.VersionID }),
		c.Small("version_number", func(r *responseRow) *int { return &r.Value.Number }),
		c.ID("owner_id", func(r *responseRow) *scalar.ID { return &r.Value.Ref.ID }),
		c.Text("owner_type", func(r *responseRow) *owner.Type { return &r.Value.Type }),
		c.Text("tenant", func(r *responseRow) *string { return &r.Value.Tenant }),
		c.IDs("document_ids", func(r *responseRow) *[]scalar.ID { return &r.Value.Documents }),
		c.Bytes("answers", func(r *responseRow) *domain.Sealed { return &r.Value.Answers }),
		c.Time("created_at", func(r *responseRow) *scalar.Time { return &r.Value.Created }),
		c.Int("sequence", func(r *responseRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *responseRow) *int64 { return &r.Key.Ordinal }),
	},
	Loaded: func(r *responseRow) error {
		r.Value.Sequence = r.Key.Sequence
		return nil
	},
}

type responseChanges struct{ responses projections.Adder[Response] }

func newResponses(b *projections.Batch) *responseChanges { return &responseChanges{responses.Copy(b)} }

func (x *responseChanges) add(at position, event decide.Event) {
	if e, ok := event.(*domain.ResponseAdded); ok {
		x.responses.Add(responseAt(at, e))
	}
}

func responseAt(at position, e *domain.ResponseAdded) *responseRow {
	return &responseRow{Key: at.Key, Value: Response{ResponseAdded: *e, Tenant: at.tenant()}}
}

// ResponsesIn returns the responses in a record.
func ResponsesIn(e *record.Entry) iter.Seq[*projections.Row[Response]] {
	return func(yield func(*responseRow) bool) {
		for at, event := range eventsOf(e) {
			if added, ok := event.(*domain.ResponseAdded); ok && !yield(responseAt(at, added)) {
				return
			}
		}
	}
}

func (x *responseChanges) write(*projections.Batch) {}

// Responses returns a numbered page of an owner's responses, newest first, and how many there are.
func Responses(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref, size, offset int) (rows []Response, total int, asOf int64, err error) {
	return numberedOf(ctx, db, responses, v, ref, size, offset)
}

// OneResponse returns a response of an owner.
func OneResponse(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref, id scalar.ID) (r Response, found bool, asOf int64, err error) {
	return oneOf(ctx, db, responses, v, ref, id)
}

// AllResponses returns the table of responses.
func AllResponses() *projections.Table[Response] { return responses }
