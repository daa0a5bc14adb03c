package onboarding

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands and events about documents.
const (
	CommandAddDocument    = "document.add"
	CommandChangeDocument = "document.change"

	TypeDocumentAdded   = "document.added"
	TypeDocumentChanged = "document.changed"
)

// AddDocument reports that a file was uploaded for an owner. The sealed file is in the blob store.
//
// Event: document.added. Refusals: NotFound; Conflict DOCUMENT_ID_TAKEN.
type AddDocument struct {
	owner.Ref
	ID          scalar.ID
	Category    document.Category
	Orientation document.Orientation
	Name        Sealed
	Source      string
	SHA256      []byte // of the sealed file
	Size        int64  // of the unsealed file, in bytes
	Format      format.Format
	ValidUntil  scalar.Time // zero: without end
}

// CommandType returns the type of the command.
func (*AddDocument) CommandType() string { return CommandAddDocument }

func (*AddDocument) givenBy() ActorKind { return ByClient }

func (p *AddDocument) decide(d *draft) error {
	if _, err := d.client(p.Ref); err != nil {
		return err
	}
	doc := Document{ID: p.ID, Ref: p.Ref, Category: p.Category, Orientation: p.Orientation, Source: p.Source,
		SHA256: slices.Clone(p.SHA256), Size: p.Size, Format: p.Format, ValidUntil: p.ValidUntil, Created: d.at.Time}
	if err := doc.check(); err != nil {
		return err
	}
	if len(p.Name) == 0 || len(p.Name) > MaxSealedName {
		return decide.InvalidField("name", "the sealed name is missing or too long")
	}
	if _, taken := d.state.documents[p.ID]; taken {
		return decide.Refuse(decide.Conflict, "DOCUMENT_ID_TAKEN", "there is a document with this id")
	}
	d.add(&DocumentAdded{Document: doc, Name: slices.Clone(p.Name)})
	return nil
}

func (d *Document) check() error {
	category, known := document.ParseCategory(string(d.Category))
	switch {
	case d.ID.IsZero():
		return decide.InvalidField("id", "a document has an id")
	case !known || category != d.Category:
		return decide.InvalidField("category", "there is no such category")
	case !slices.Contains(document.Orientations(), d.Orientation):
		return decide.InvalidField("orientation", "there is no such orientation")
	case d.Source == "" || len(d.Source) > maxSource || strings.ContainsFunc(d.Source, func(r rune) bool { return r <= ' ' || r > '~' }):
		return decide.InvalidField("source", "the key of the file is 1 to 200 printable characters of ASCII")
	case len(d.SHA256) != sha256.Size:
		return decide.InvalidField("sha256", "the hash must have 32 bytes")
	case d.Size < 1 || d.Size > MaxFile:
		return decide.InvalidField("size", "a file has 1 byte to 20 MiB")
	case d.Format.MediaType() == "":
		return decide.InvalidField("format", "there is no such kind of file")
	case !d.Category.Takes(d.Format):
		return decide.InvalidField("category", "documents of the category are no tables")
	case d.ValidUntil != 0 && !d.ValidUntil.Canonical():
		return decide.InvalidField("valid_until", "the time is beyond the year 9999")
	}
	return nil
}

// ChangeDocument asks to change the category or the end of validity of a document. Only operators give it. Members that
// are nil stay unchanged.
//
// Event: document.changed. Refusals: NotFound; Conflict OWNER_RESTRICTED, NOTHING_CHANGED.
type ChangeDocument struct {
	owner.Ref
	ID         scalar.ID
	Category   *document.Category
	ValidUntil *scalar.Time // zero: without end
}

// CommandType returns the type of the command.
func (*ChangeDocument) CommandType() string { return CommandChangeDocument }

func (*ChangeDocument) givenBy() ActorKind { return ByOperator }

func (p *ChangeDocument) decide(d *draft) error {
	if _, err := d.operator(p.Ref); err != nil {
		return err
	}
	k, known := d.state.documents[p.ID]
	if !known || k.Ref != p.Ref {
		return decide.Refuse(decide.NotFound, "DOCUMENT_NOT_FOUND", "the owner has no such document")
	}
	changed := *k
	if p.Category != nil {
		changed.Category = *p.Category
	}
	if p.ValidUntil != nil {
		changed.ValidUntil = *p.ValidUntil
	}
	if err := changed.check(); err != nil {
		return err
	}
	if changed.Category == k.Category && changed.ValidUntil == k.ValidUntil {
		return decide.Refuse(decide.Conflict, "NOTHING_CHANGED", "the document is like that already")
	}
	d.add(&DocumentChanged{Document: *changed.clone(), Updated: d.at.Time})
	return nil
}

// DocumentAdded says that a document was added to an owner.
type DocumentAdded struct {
	Document
	Name Sealed `json:"name"`
}

// EventType returns document.added.
func (*DocumentAdded) EventType() string { return TypeDocumentAdded }

// DocumentChanged contains the complete document after a change, except for its name, which never changes.
type DocumentChanged struct {
	Document
	Updated scalar.Time `json:"updated_at"`
}

// EventType returns document.changed.
func (*DocumentChanged) EventType() string { return TypeDocumentChanged }

func (s *State) addDocument(now scalar.Time, d *Document) {
	s.documents[d.ID] = d
	if f, known := s.owners[d.Ref.ID]; known {
		f.documents = append(f.documents, d.ID)
	}
	s.scheduleReminder(now, d)
}

func (f *fold) documentChanged(e *DocumentChanged) {
	d, known := f.documents[e.ID]
	if !known {
		return
	}
	changed := *d // readers may hold the old document
	changed.Category, changed.ValidUntil = e.Category, e.ValidUntil
	f.documents[e.ID] = &changed
	if changed.ValidUntil != d.ValidUntil { // the reminder of an unchanged end may have been given
		f.scheduleReminder(e.Updated, &changed)
	}
}

// scheduleReminder puts the reminder of a document's end of validity on the due list. If the end has passed, there is no
// reminder, since it would come too late.
func (s *State) scheduleReminder(now scalar.Time, d *Document) {
	entry := dueKey{dueDocument, d.ID}
	s.due.drop(entry)
	if d.ValidUntil > now {
		s.due.set(entry, max(now, d.ValidUntil-Reminder))
	}
}

// remind decides the reminder of a document's end of validity.
func (d *draft) remind(document scalar.ID) {
	k := d.state.documents[document]
	d.open(d.state.owners[k.Ref.ID])
	d.notice(Notice{Type: documentExpiring, Document: &ExpiringDocument{ID: k.ID, Category: k.Category, ValidUntil: k.ValidUntil}})
}

// Document returns a document of any owner.
func (s *State) Document(id scalar.ID) (*Document, bool) {
	d, known := s.documents[id]
	return d, known
}
