package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Document is an uploaded file.
type Document struct {
	ID          scalar.ID            `json:"id"`
	Category    document.Category    `json:"category"`
	Orientation document.Orientation `json:"orientation"`
	Name        string               `json:"name"`
	Source      string               `json:"source"`
	OwnerType   owner.Type           `json:"owner_type"`
	OwnerID     scalar.ID            `json:"owner_id"`
	ValidUntil  *scalar.Time         `json:"valid_until"` // null: no end
	Created     scalar.Time          `json:"created_at"`
	Erased      bool                 `json:"erased,omitzero"` // whether the name is erased, in answers as of past records
}

// NewDocument converts a document to its JSON form. Its file name is passed separately because the log stores it
// encrypted.
func NewDocument(d *onboarding.Document, name string) Document {
	out := Document{ID: d.ID, Category: d.Category, Orientation: d.Orientation, Name: name, Source: d.Source, OwnerType: d.Ref.Type, OwnerID: d.Ref.ID,
		Created: d.Created}
	if d.ValidUntil != 0 {
		out.ValidUntil = &d.ValidUntil
	}
	return out
}

// DownloadLink is a temporary link to a file. The link needs no authentication.
type DownloadLink struct {
	URL       string `json:"url"`
	ExpiresIn int64  `json:"expires_in"` // seconds
}
