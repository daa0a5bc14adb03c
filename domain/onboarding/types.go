package onboarding

import (
	"encoding/hex"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Sealed is a ciphertext under the key of the owner whom it is about. Its JSON form is padded standard base64.
type Sealed []byte

// Digest is a SHA-256. Its JSON form is lower-case hex, as sha256sum writes it.
type Digest []byte

// AppendText implements encoding.TextAppender.
func (d Digest) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, d), nil }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText reads the hex form.
func (d *Digest) UnmarshalText(b []byte) error {
	sum, err := hex.AppendDecode(nil, b)
	*d = sum
	return err
}

// ActorKind says on whose behalf something happened.
type ActorKind string

// The kinds of actors.
const (
	ByClient   ActorKind = "client"
	ByOperator ActorKind = "operator"
	BySystem   ActorKind = "system" // a rule: a deadline, an approval that needs nobody
)

// The sizes that the rules hold commands to, in bytes.
const (
	// MaxFields is how long the sealed fields of an owner may be: all of them at their longest, in UTF-8, with room for
	// what sealing adds.
	MaxFields = 32 << 10
	// MaxSealedName is how long the sealed name of a file may be: 255 characters in UTF-8 and what sealing adds.
	MaxSealedName = 2 << 10
	// MaxFile is how long an uploaded file may be before it is sealed.
	MaxFile = 20 << 20

	maxSource = 200
)

// Reminder is how long before a document's end its owner's tenant is told.
const Reminder = 30 * scalar.Day

// Owner is what is known in clear of a person or a corporate.
type Owner struct {
	owner.Ref
	Tenant string `json:"tenant"`
	// ExternalID is an HMAC of the tenant's own name of the owner, under a key of the tenant's. It is nil once the owner is
	// erased.
	ExternalID []byte `json:"external_id,omitempty"`
	// Revision counts the forms of the owner's fields from 1. Who changes them names the form that it read.
	Revision int64       `json:"revision"`
	State    owner.State `json:"state"`
	Created  scalar.Time `json:"created_at"`
	Updated  scalar.Time `json:"updated_at"`
}

func (o *Owner) clone() *Owner {
	c := *o
	c.ExternalID = slices.Clone(o.ExternalID)
	return &c
}

// Document is what is known in clear of an uploaded file.
type Document struct {
	ID scalar.ID `json:"id"`
	owner.Ref
	Category    document.Category    `json:"category"`
	Orientation document.Orientation `json:"orientation"`
	// Source is the key under which the sealed file lies in the blob store.
	Source string        `json:"source"`
	SHA256 Digest        `json:"sha256"` // of the sealed file
	Size   int64         `json:"size"`   // in bytes, of the file in clear
	Format format.Format `json:"format"`
	// ValidUntil is when the document ends; zero: never.
	ValidUntil scalar.Time `json:"valid_until,omitzero"`
	Created    scalar.Time `json:"created_at"`
}

func (d *Document) clone() *Document {
	c := *d
	c.SHA256 = slices.Clone(d.SHA256)
	return &c
}
