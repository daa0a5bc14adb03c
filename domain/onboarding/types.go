package onboarding

import (
	"encoding/hex"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Sealed is a ciphertext under the key of the owner that it concerns. Its JSON form is padded standard base64.
type Sealed []byte

// Digest is a SHA-256. Its JSON form is lower-case hex, like the output of sha256sum.
type Digest []byte

// AppendText implements encoding.TextAppender.
func (d Digest) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, d), nil }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText parses the hex form.
func (d *Digest) UnmarshalText(b []byte) error {
	sum, err := hex.AppendDecode(nil, b)
	*d = sum
	return err
}

// ActorKind says who performed an action.
type ActorKind string

// The kinds of actors.
const (
	ByClient   ActorKind = "client"
	ByOperator ActorKind = "operator"
	BySystem   ActorKind = "system" // a rule, such as a deadline or an automatic approval
)

// The size limits of commands, in bytes.
const (
	// MaxFields is the greatest length of an owner's sealed fields: all fields of the greatest length in UTF-8, and the
	// overhead of sealing.
	MaxFields = 32 << 10
	// MaxSealedName is the greatest length of a file's sealed name: 255 characters in UTF-8 and the overhead of sealing.
	MaxSealedName = 2 << 10
	// MaxFile is the greatest length of an uploaded file before sealing.
	MaxFile = 20 << 20

	maxSource = 200
)

// Reminder is the time between the reminder of a document's end of validity and that end.
const Reminder = 30 * scalar.Day

// Owner contains the data of a person or a corporate that is in the clear.
type Owner struct {
	owner.Ref
	Tenant string `json:"tenant"`
	// ExternalID is an HMAC of the tenant's own id of the owner, under a key of the tenant. It is nil after the erasure.
	ExternalID []byte `json:"external_id,omitempty"`
	// Revision counts the revisions of the owner's fields, from 1. A change names the revision that it is based on.
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

// Document contains the data of an uploaded file that is in the clear.
type Document struct {
	ID scalar.ID `json:"id"`
	owner.Ref
	Category    document.Category    `json:"category"`
	Orientation document.Orientation `json:"orientation"`
	// Source is the key of the sealed file in the blob store.
	Source string        `json:"source"`
	SHA256 Digest        `json:"sha256"` // of the sealed file
	Size   int64         `json:"size"`   // of the unsealed file, in bytes
	Format format.Format `json:"format"`
	// ValidUntil is the end of validity, or zero if there is none.
	ValidUntil scalar.Time `json:"valid_until,omitzero"`
	Created    scalar.Time `json:"created_at"`
}

func (d *Document) clone() *Document {
	c := *d
	c.SHA256 = slices.Clone(d.SHA256)
	return &c
}
