package onboarding

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Document is an uploaded file. Once its owner is erased it has no Name.
type Document struct {
	domain.Document
	Tenant   string
	Name     domain.Sealed
	Updated  scalar.Time
	Sequence int64 // of the record that changed it last
}

type documentRow = projections.Row[Document]

var documents = &projections.Table[Document]{
	Name: "documents", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[documentRow]{
		c.ID("id", func(r *documentRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.ID("owner_id", func(r *documentRow) *scalar.ID { return &r.Value.Ref.ID }).Fixed(),
		c.Text("owner_type", func(r *documentRow) *owner.Type { return &r.Value.Type }).Fixed(),
		c.Text("tenant", func(r *documentRow) *string { return &r.Value.Tenant }).Fixed(),
		c.Text("category", func(r *documentRow) *document.Category { return &r.Value.Category }),
		c.Text("orientation", func(r *documentRow) *document.Orientation { return &r.Value.Orientation }).Fixed(),
		c.Bytes("name", func(r *documentRow) *domain.Sealed { return &r.Value.Name }).Fixed(),
		c.Text("source", func(r *documentRow) *string { return &r.Value.Source }).Fixed(),
		c.Bytes("sha256", func(r *documentRow) *domain.Digest { return &r.Value.SHA256 }).Fixed(),
		c.Int("size", func(r *documentRow) *int64 { return &r.Value.Size }).Fixed(),
		c.Text("format", func(r *documentRow) *format.Format { return &r.Value.Format }).Fixed(),
		c.Time("valid_until", func(r *documentRow) *scalar.Time { return &r.Value.ValidUntil }),
		c.Time("created_at", func(r *documentRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated_at", func(r *documentRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("created_sequence", func(r *documentRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *documentRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.Int("sequence", func(r *documentRow) *int64 { return &r.Value.Sequence }),
	},
}

// documentHistory has the earlier states of documents. It has no sealed values: the name of a document never changes.
var documentHistory = projections.NewHistory(documents, "document_history")

type documentChanges struct {
	documents versioned[Document]
}

func newDocuments(*projections.Batch) *documentChanges { return &documentChanges{} }

func (x *documentChanges) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.DocumentAdded:
		x.documents.make(at, e.ID, documentRow{Key: at.Key, Value: Document{Document: e.Document, Tenant: at.tenant(),
			Name: e.Name, Updated: e.Created, Sequence: at.Sequence}})
	case *domain.DocumentChanged:
		r := x.documents.slot(at, e.ID, 0)
		r.Value.Document, r.Value.Updated, r.Value.Sequence = e.Document, e.Updated, at.Sequence
	}
}

func (x *documentChanges) write(b *projections.Batch) {
	x.documents.write(b, documentHistory, []string{"category", "valid_until", "updated_at", "sequence"})
}

// Documents returns a numbered page of an owner's documents, newest first, and how many there are.
func Documents(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref, size, offset int) (rows []Document, total int, asOf int64, err error) {
	return numberedOf(ctx, db, documents, v, ref, size, offset)
}

// OneDocument returns a document of an owner.
func OneDocument(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref, id scalar.ID) (d Document, found bool, asOf int64, err error) {
	return oneOf(ctx, db, documents, v, ref, id)
}

// AllDocuments returns the table of documents.
func AllDocuments() *projections.Table[Document] { return documents }
