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
	ValidUntil  *scalar.Time         `json:"valid_until"` // null: for ever
	Created     scalar.Time          `json:"created_at"`
}

// NewDocument shows a document: what is known of it in clear, and the name of its file.
func NewDocument(d *onboarding.Document, name string) Document {
	out := Document{ID: d.ID, Category: d.Category, Orientation: d.Orientation, Name: name, Source: d.Source, OwnerType: d.Ref.Type, OwnerID: d.Ref.ID,
		Created: d.Created}
	if d.ValidUntil != 0 {
		out.ValidUntil = &d.ValidUntil
	}
	return out
}

// DownloadLink is where a file may be had for a while, by whoever has the link.
type DownloadLink struct {
	URL       string `json:"url"`
	ExpiresIn int64  `json:"expires_in"` // seconds
}
