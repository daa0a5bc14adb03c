package onboarding

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// CountingResponse is a response that decides whether a requirement is met: the owner's latest one to a questionnaire, or the
// latest one to the newest version that the owner has answered. It has no answers.
type CountingResponse struct {
	ID              scalar.ID
	QuestionnaireID scalar.ID
	Number          int // of the version
	Documents       []scalar.ID
	Created         scalar.Time
	Sequence        int64
}

// NamedDocument is a document that a counting response names, in its latest state. It has no file name.
type NamedDocument struct {
	ID         scalar.ID
	Category   document.Category
	ValidUntil scalar.Time // zero: no end
	Created    scalar.Time
	Added      int64 // the sequence of the record that added it
	Sequence   int64 // of the record that last changed it
}

// Evidence contains the responses of an owner that decide which requirements are met.
type Evidence struct {
	Responses []CountingResponse // oldest first
	Documents []NamedDocument    // in the order of arrival
}

// Answered returns the responses to a questionnaire as the rules count them.
func (e *Evidence) Answered(questionnaire scalar.ID) (a entitlement.Answered) {
	for i := range e.Responses {
		if r := &e.Responses[i]; r.QuestionnaireID == questionnaire {
			a.Version, a.Sequence = max(a.Version, r.Number), max(a.Sequence, r.Sequence)
		}
	}
	return a
}

// counting selects the counting responses of an owner to some questionnaires up to a sequence.
const counting = `SELECT id, questionnaire_id, version_number, document_ids, created_at, sequence, ordinal FROM (
	SELECT id, questionnaire_id, version_number, document_ids, created_at, sequence, ordinal,
		row_number() OVER (PARTITION BY questionnaire_id ORDER BY sequence DESC) AS by_age,
		row_number() OVER (PARTITION BY questionnaire_id ORDER BY version_number DESC, sequence DESC) AS by_version
	FROM responses WHERE owner_id = $1 AND owner_type = $2 AND questionnaire_id = ANY($3) AND sequence <= $4) r
WHERE by_age = 1 OR by_version = 1`

// EvidenceOf returns the responses of an owner to some questionnaires that count after the record with a sequence, and the documents
// that they name. The viewer must have been checked. The cost grows with the number of the owner's responses.
func EvidenceOf(ctx context.Context, db projections.DB, ref owner.Ref, questionnaires []scalar.ID, sequence int64) (e Evidence, asOf int64, err error) {
	ids := make([]pgtype.UUID, len(questionnaires))
	for i, id := range questionnaires {
		ids[i] = c.UUID(id)
	}
	args := []any{c.UUID(ref.ID), string(ref.Type), ids, sequence}
	e = Evidence{Responses: []CountingResponse{}, Documents: []NamedDocument{}}
	asOf, err = projections.Read(ctx, db, journalName,
		projections.Statement{SQL: counting + " ORDER BY sequence, ordinal", Args: args, Collect: func(rows pgx.Rows) (err error) {
			e.Responses, err = pgx.AppendRows(e.Responses, rows, scanCounting)
			return err
		}},
		projections.Statement{SQL: `SELECT id, category, valid_until, created_at, created_sequence, sequence FROM documents
			WHERE id IN (SELECT unnest(document_ids) FROM (` + counting + `) n) AND owner_id = $1 ORDER BY created_sequence, created_ordinal`,
			Args: args, Collect: func(rows pgx.Rows) (err error) {
				e.Documents, err = pgx.AppendRows(e.Documents, rows, scanNamed)
				return err
			}})
	return e, asOf, err
}

func scanCounting(row pgx.CollectableRow) (r CountingResponse, err error) {
	var id, questionnaire pgtype.UUID
	var documents []pgtype.UUID
	var created pgtype.Timestamptz
	var ordinal int64
	err = row.Scan(&id, &questionnaire, &r.Number, &documents, &created, &r.Sequence, &ordinal)
	r.ID, r.QuestionnaireID, r.Created, r.Documents = id.Bytes, questionnaire.Bytes, timeOf(created), make([]scalar.ID, len(documents))
	for i := range documents {
		r.Documents[i] = documents[i].Bytes
	}
	return r, err
}

func scanNamed(row pgx.CollectableRow) (d NamedDocument, err error) {
	var id pgtype.UUID
	var until, created pgtype.Timestamptz
	err = row.Scan(&id, &d.Category, &until, &created, &d.Added, &d.Sequence)
	d.ID, d.ValidUntil, d.Created = id.Bytes, timeOf(until), timeOf(created)
	return d, err
}

// timeOf returns the time of a column, or zero for NULL.
func timeOf(t pgtype.Timestamptz) scalar.Time {
	if !t.Valid {
		return 0
	}
	return scalar.TimeOf(t.Time)
}
