package wire

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// Webhook is a webhook registration as its tenant and operators see it. Public keys are padded standard base64 of
// their 32 bytes.
type Webhook struct {
	ID        scalar.ID           `json:"id"`
	KeyID     string              `json:"key_id"`
	URL       string              `json:"url"`
	Types     []webhook.EventType `json:"event_types"`
	All       bool                `json:"include_all_events"`
	PublicKey []byte              `json:"public_key"`
	// While a key is being replaced, deliveries are also signed with NextPublicKey, which replaces PublicKey at
	// NextFrom.
	NextPublicKey []byte      `json:"next_public_key,omitempty"`
	NextFrom      scalar.Time `json:"next_public_key_from,omitzero"`
	Created       scalar.Time `json:"created_at"`
	// Disabled is the time from which no deliveries are attempted. It is omitted for an enabled webhook.
	Disabled scalar.Time `json:"disabled_at,omitzero"`
}

// NewWebhook converts a registration to its JSON form.
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

// Delivery is a notification to one webhook. The owner is null for test events.
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

// Attempt is the receipt of one delivery attempt. Response is the beginning of the receiver's reply. It is null if
// there was none or if it may no longer be shown.
type Attempt struct {
	Number     int         `json:"number"`
	Started    scalar.Time `json:"started_at"`
	DurationMS int64       `json:"duration_ms"`
	StatusCode *int        `json:"status_code"`
	Error      *string     `json:"error"`
	Response   *string     `json:"response"`
}

// NewAttempt converts a receipt to its JSON form. The reply is the decrypted part of the receiver's response, or nil.
// Invalid UTF-8 in it is replaced with U+FFFD.
func NewAttempt(number int, started scalar.Time, durationMS int64, status int, failure string, reply []byte) Attempt {
	a := Attempt{Number: number, Started: started, DurationMS: durationMS, Error: nullIfEmpty(failure)}
	if status != 0 {
		a.StatusCode = &status
	}
	if reply != nil {
		text := strings.ToValidUTF8(string(reply), "\uFFFD")
		a.Response = &text
	}
	return a
}
