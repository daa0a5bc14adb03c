package wire

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// Webhook is a registration as its tenant and operators see it. Public keys are padded standard base64 of their 32 bytes.
type Webhook struct {
	ID        scalar.ID           `json:"id"`
	KeyID     string              `json:"key_id"`
	URL       string              `json:"url"`
	Types     []webhook.EventType `json:"event_types"`
	All       bool                `json:"include_all_events"`
	PublicKey []byte              `json:"public_key"`
	// NextPublicKey signs as well, and takes the place of PublicKey at NextFrom: while a key is replaced.
	NextPublicKey []byte      `json:"next_public_key,omitempty"`
	NextFrom      scalar.Time `json:"next_public_key_from,omitzero"`
	Created       scalar.Time `json:"created_at"`
	// Disabled is since when nothing is tried any more.
	Disabled scalar.Time `json:"disabled_at,omitzero"`
}

// NewWebhook shows a registration.
func NewWebhook(w *onboarding.Webhook) Webhook {
	out := Webhook{ID: w.ID, KeyID: w.Key.KeyID, URL: w.URL, Types: w.Types, All: w.All, PublicKey: w.Key.Public, Created: w.Created, Disabled: w.Disabled}
	if out.Types == nil {
		out.Types = []webhook.EventType{}
	}
	if w.Next != nil {
		out.NextPublicKey, out.NextFrom = w.Next.Public, w.NextFrom
	}
	return out
}

// Delivery is a notice on its way to a registration. Of a test event, the owner is null.
type Delivery struct {
	ID          scalar.ID         `json:"id"`
	WebhookID   scalar.ID         `json:"webhook_id"`
	EventID     scalar.ID         `json:"event_id"`
	EventType   webhook.EventType `json:"event_type"`
	OwnerType   *owner.Type       `json:"owner_type"`
	OwnerID     *scalar.ID        `json:"owner_id"`
	Status      webhook.Status    `json:"status"`
	Created     scalar.Time       `json:"created_at"`
	NextAttempt *scalar.Time      `json:"next_attempt_at"`
	Attempts    []Attempt         `json:"attempts"`
}

// Attempt is the receipt of one try. Response is the beginning of the receiver's reply: null where none came, and where it may
// not be shown any more.
type Attempt struct {
	Number     int         `json:"number"`
	Started    scalar.Time `json:"started_at"`
	DurationMS int64       `json:"duration_ms"`
	StatusCode *int        `json:"status_code"`
	Error      *string     `json:"error"`
	Response   *string     `json:"response"`
}

// NewAttempt shows the receipt of an attempt. The reply is what was opened of it, nil for nothing; what is no UTF-8 in it is
// replaced.
func NewAttempt(number int, started scalar.Time, durationMS int64, status int, failure string, reply []byte) Attempt {
	a := Attempt{Number: number, Started: started, DurationMS: durationMS, Error: told(failure)}
	if status != 0 {
		a.StatusCode = &status
	}
	if reply != nil {
		text := strings.ToValidUTF8(string(reply), "\uFFFD")
		a.Response = &text
	}
	return a
}
