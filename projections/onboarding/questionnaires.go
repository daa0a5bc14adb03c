package onboarding

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Questionnaire is a questionnaire without its versions.
type Questionnaire struct {
	questionnaire.Questionnaire
	Sequence int64 // of the record that changed it last
}

// Version is a version of a questionnaire.
type Version struct {
	questionnaire.Version
	IsPublished bool

	questions string
}

type (
	questionnaireRow = projections.Row[Questionnaire]
	versionRow       = projections.Row[Version]
)

var questionnaires = &projections.Table[Questionnaire]{
	Name: "questionnaires", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[questionnaireRow]{
		c.ID("id", func(r *questionnaireRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.Text("name", func(r *questionnaireRow) *string { return &r.Value.Name }),
		c.Text("description", func(r *questionnaireRow) *string { return &r.Value.Description }),
		c.Text("owner_type", func(r *questionnaireRow) *owner.Type { return &r.Value.OwnerType }).Fixed(),
		c.ID("owner_type_id", func(r *questionnaireRow) *scalar.ID { return &r.Value.OwnerTypeID }).Fixed(),
		c.Bool("is_published", func(r *questionnaireRow) *bool { return &r.Value.IsPublished }),
		c.Time("created_at", func(r *questionnaireRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Int("created_sequence", func(r *questionnaireRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *questionnaireRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.Int("sequence", func(r *questionnaireRow) *int64 { return &r.Value.Sequence }),
	},
}

var versions = &projections.Table[Version]{
	Name: "questionnaire_versions", Journal: journalName,
	Columns: []c.Column[versionRow]{
		c.ID("questionnaire_id", func(r *versionRow) *scalar.ID { return &r.Value.QuestionnaireID }).Key(),
		c.Small("version_number", func(r *versionRow) *int { return &r.Value.Number }).Key(),
		c.ID("id", func(r *versionRow) *scalar.ID { return &r.Value.ID }).Fixed(),
		c.Bool("is_published", func(r *versionRow) *bool { return &r.Value.IsPublished }),
		c.JSON("questions", func(r *versionRow) *string { return &r.Value.questions }).Fixed(),
		c.Time("created_at", func(r *versionRow) *scalar.Time { return &r.Value.Created }).Fixed(),
	},
	Loaded: func(r *versionRow) error {
		if err := json.Unmarshal([]byte(r.Value.questions), &r.Value.Questions); err != nil {
			return fmt.Errorf("the questions of version %s: %w", r.Value.ID, err)
		}
		r.Value.questions = ""
		return nil
	},
}

// text returns a value as JSON in the journal's encoding. It must only be used for values that cannot fail to encode.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

type versionKey struct {
	questionnaire scalar.ID
	number        int
}

type questionnaireChanges struct {
	questionnaires projections.Latest[scalar.ID, changed[Questionnaire]]
	versions       projections.Latest[versionKey, changed[Version]]
	// unpublished are the questionnaires of which no version from before the batch is published any more.
	unpublished projections.Latest[scalar.ID, pgtype.UUID]
}

func newQuestionnaires(*projections.Batch) *questionnaireChanges { return &questionnaireChanges{} }

func (x *questionnaireChanges) set(at position, q questionnaire.Questionnaire) {
	r, again := x.questionnaires.Slot(q.ID)
	if !again {
		r.Key = at.Key
	}
	r.groups |= 1
	r.Value = Questionnaire{q, at.Sequence}
}

func (x *questionnaireChanges) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.QuestionnaireCreated:
		x.set(at, e.Questionnaire)
		r, _ := x.questionnaires.Slot(e.ID)
		r.made = true
	case *domain.QuestionnaireChanged:
		x.set(at, e.Questionnaire)
	case *domain.VersionAdded:
		x.versions.Put(versionKey{e.QuestionnaireID, e.Number}, changed[Version]{made: true,
			Row: versionRow{Value: Version{Version: e.Version, questions: text(e.Questions)}}})
	case *domain.QuestionnairePublished:
		x.set(at, e.Questionnaire)
		r, _ := x.versions.Slot(versionKey{e.Questionnaire.ID, e.Number})
		r.Value.QuestionnaireID, r.Value.Number, r.Value.IsPublished = e.Questionnaire.ID, e.Number, true
	case *domain.QuestionnaireUnpublished:
		x.set(at, e.Questionnaire)
		x.unpublished.Put(e.ID, c.UUID(e.ID))
		for i := range x.versions.Rows() {
			if r := &x.versions.Rows()[i]; r.Value.QuestionnaireID == e.ID {
				r.Value.IsPublished = false
			}
		}
	}
}

func (x *questionnaireChanges) write(b *projections.Batch) {
	put(b, questionnaires, x.questionnaires.Rows(), nil)
	unpublished := x.unpublished.Rows()
	to := versions.Copy(b)
	var set []versionRow
	for _, r := range x.versions.Rows() {
		if r.made {
			to.Add(&r.Row)
		}
		if !r.made || len(unpublished) > 0 {
			set = append(set, r.Row)
		}
	}
	if len(unpublished) > 0 { // all versions, those that the batch publishes later among them: they are set again
		b.Queue(`UPDATE questionnaire_versions SET is_published = false WHERE questionnaire_id = ANY($1) AND is_published`, unpublished)
	}
	versions.Update(b, set, "is_published")
}

// QuestionnaireFilter narrows a list of questionnaires.
type QuestionnaireFilter struct {
	Type owner.Type
	// Owner adds the questionnaires that are only for this owner. The zero ID adds none. The caller must have checked
	// that the viewer may see the owner.
	Owner scalar.ID
	// All adds the unpublished questionnaires and those of every owner. It is for operators.
	All bool
}

// Questionnaires returns a numbered page of questionnaires, newest first, and the length of the list.
func Questionnaires(ctx context.Context, db projections.DB, f QuestionnaireFilter, size, offset int) (rows []Questionnaire, total int, asOf int64, err error) {
	l := projections.Counted[Questionnaire]{Table: questionnaires, Names: []string{"questionnaires/generic/" + string(f.Type)}}
	switch {
	case f.All:
		l.Names = []string{"questionnaires/" + string(f.Type)}
		for _, published := range []bool{true, false} {
			l.Parts = append(l.Parts, func(w *projections.Where) {
				w.And("owner_type = ?", string(f.Type))
				w.And("is_published = ?", published)
			})
		}
	default:
		l.Parts = append(l.Parts, func(w *projections.Where) {
			w.And("is_published AND owner_type_id IS NULL AND owner_type = ?", string(f.Type))
		})
		if !f.Owner.IsZero() {
			l.Names = append(l.Names, "questionnaires/"+f.Owner.String())
			l.Parts = append(l.Parts, func(w *projections.Where) { w.And("is_published AND owner_type_id = ?", c.UUID(f.Owner)) })
		}
	}
	return l.Numbered(ctx, db, size, offset)
}

// AllQuestionnaires returns the table of questionnaires, and AllVersions that of their versions.
func AllQuestionnaires() *projections.Table[Questionnaire] { return questionnaires }

// AllVersions returns the table of the versions of questionnaires.
func AllVersions() *projections.Table[Version] { return versions }
