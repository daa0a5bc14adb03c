package seal

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The places of what the onboarding journal holds sealed. Those of an owner are sealed with that owner's key, by Owners; the
// others with the venue's own, by Box.

// OwnerFields is the place of what is told of an owner: the JSON of an owner.Person or an owner.Corporate.
func OwnerFields(o owner.Ref) Place { return Place{o.String(), "fields", "owner"} }

// DocumentName is the place of the name that a file was uploaded under.
func DocumentName(o owner.Ref, document scalar.ID) Place {
	return Place{o.String(), "name", "document/" + document.String()}
}

// DocumentFile is the place of an uploaded file.
func DocumentFile(o owner.Ref, document scalar.ID) Place {
	return Place{o.String(), "file", "document/" + document.String()}
}

// Answers is the place of an owner's answers to a version of a questionnaire.
func Answers(o owner.Ref, version scalar.ID) Place {
	return Place{o.String(), "answers", "response/" + version.String()}
}

// Reason is the place of the reason of an action on a trigger, which the tenant is shown.
func Reason(o owner.Ref, trigger scalar.ID) Place { return ofTrigger(o, "reason", trigger) }

// InternalReason is the place of the reason of an action on a trigger, which operators are shown.
func InternalReason(o owner.Ref, trigger scalar.ID) Place {
	return ofTrigger(o, "internal_reason", trigger)
}

// ExternalReference is the place of the tenant's own name of a trigger.
func ExternalReference(o owner.Ref, trigger scalar.ID) Place {
	return ofTrigger(o, "external_reference", trigger)
}

func ofTrigger(o owner.Ref, field string, trigger scalar.ID) Place {
	return Place{o.String(), field, "trigger/" + trigger.String()}
}

// NoticeBody is the place of the body that receivers are sent about an event.
func NoticeBody(o owner.Ref, event scalar.ID) Place {
	return Place{o.String(), "body", "event/" + event.String()}
}

// DeliveryResponse is the place of what a receiver replied to a delivery.
func DeliveryResponse(o owner.Ref, delivery scalar.ID) Place {
	return Place{o.String(), "response", "delivery/" + delivery.String()}
}

// The places below are of the venue's own key.

// ErasureReason is the place of the reason why an owner is erased, held or released. It outlives the owner's key.
func ErasureReason(o owner.Ref) Place { return Place{o.String(), "reason", "erasure"} }

// WebhookKey is the place of the private key that a webhook's deliveries are signed with.
func WebhookKey(webhook scalar.ID) Place {
	return Place{"webhook/" + webhook.String(), "private_key", "webhook"}
}

// TestBody is the place of the body of an event about no owner, which a tenant has sent to try its receiver.
func TestBody(tenant string, event scalar.ID) Place {
	return Place{"tenant/" + tenant, "body", "event/" + event.String()}
}

// TestResponse is the place of what a receiver replied to such an event's delivery.
func TestResponse(tenant string, delivery scalar.ID) Place {
	return Place{"tenant/" + tenant, "response", "delivery/" + delivery.String()}
}

// ExternalID returns the keyed hash by which a tenant's own name of an owner is found again, and nothing else told of it.
func (b *Box) ExternalID(tenant string, of owner.Type, externalID string) []byte {
	return MAC(b.Derive("external id "+tenant), []byte(string(of)+"/"+externalID))
}
