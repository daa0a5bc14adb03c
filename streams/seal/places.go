package seal

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// These functions return the places of the sealed values in the onboarding journal. Values of an owner are sealed with
// the owner's key, by Owners; the others with the venue's key, by Box.

// OwnerFields is the place of an owner's data: the JSON of an owner.Person or an owner.Corporate.
func OwnerFields(o owner.Ref) Place { return Place{o.String(), "fields", "owner"} }

// DocumentName is the place of the name of an uploaded file.
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

// Reason is the place of the reason of an action on a trigger, as shown to the tenant.
func Reason(o owner.Ref, trigger scalar.ID) Place { return ofTrigger(o, "reason", trigger) }

// InternalReason is the place of the reason of an action on a trigger, as shown to operators.
func InternalReason(o owner.Ref, trigger scalar.ID) Place {
	return ofTrigger(o, "internal_reason", trigger)
}

// ExternalReference is the place of the tenant's reference for a trigger.
func ExternalReference(o owner.Ref, trigger scalar.ID) Place {
	return ofTrigger(o, "external_reference", trigger)
}

func ofTrigger(o owner.Ref, field string, trigger scalar.ID) Place {
	return Place{o.String(), field, "trigger/" + trigger.String()}
}

// ProposalReason is the place of the reason why a proposal about an owner was rejected or withdrawn. With the zero Ref, the
// proposal is about no owner, and the venue's key is used.
func ProposalReason(o owner.Ref, proposal scalar.ID) Place {
	if o == (owner.Ref{}) {
		return Place{"venue", "reason", "proposal/" + proposal.String()}
	}
	return Place{o.String(), "reason", "proposal/" + proposal.String()}
}

// DeliveryResponse is the place of a receiver's response to a delivery.
func DeliveryResponse(o owner.Ref, delivery scalar.ID) Place {
	return Place{o.String(), "response", "delivery/" + delivery.String()}
}

// The places below use the venue's key.

// ErasureReason is the place of the reason why an owner is erased, held or released. It outlives the owner's key.
func ErasureReason(o owner.Ref) Place { return Place{o.String(), "reason", "erasure"} }

// WebhookKey is the place of the private key that signs a webhook's deliveries.
func WebhookKey(webhook scalar.ID) Place {
	return Place{"webhook/" + webhook.String(), "private_key", "webhook"}
}

// TestResponse is the place of a receiver's response to the delivery of a test event.
func TestResponse(tenant string, delivery scalar.ID) Place {
	return Place{"tenant/" + tenant, "response", "delivery/" + delivery.String()}
}

// ExternalID returns a keyed hash of a tenant's id for an owner. The hash finds the owner without revealing the id.
func (b *Box) ExternalID(tenant string, of owner.Type, externalID string) []byte {
	return MAC(b.Derive("external id "+tenant), []byte(string(of)+"/"+externalID))
}
