package seal

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// These functions return the associated data of the sealed values in the onboarding journal. Values of an owner are sealed with
// the owner's key, by Owners; the others with the venue's key, by Box.

// OwnerFields is the associated data of an owner's data: the JSON of an owner.Person or an owner.Corporate.
func OwnerFields(o owner.Ref) AssociatedData { return AssociatedData{o.String(), "fields", "owner"} }

// DocumentName is the associated data of the name of an uploaded file.
func DocumentName(o owner.Ref, document scalar.ID) AssociatedData {
	return AssociatedData{o.String(), "name", "document/" + document.String()}
}

// DocumentFile is the associated data of an uploaded file.
func DocumentFile(o owner.Ref, document scalar.ID) AssociatedData {
	return AssociatedData{o.String(), "file", "document/" + document.String()}
}

// Answers is the associated data of an owner's answers to a version of a questionnaire.
func Answers(o owner.Ref, version scalar.ID) AssociatedData {
	return AssociatedData{o.String(), "answers", "response/" + version.String()}
}

// Reason is the associated data of the reason of an action on a trigger, as shown to the tenant.
func Reason(o owner.Ref, trigger scalar.ID) AssociatedData { return ofTrigger(o, "reason", trigger) }

// InternalReason is the associated data of the reason of an action on a trigger, as shown to operators.
func InternalReason(o owner.Ref, trigger scalar.ID) AssociatedData {
	return ofTrigger(o, "internal_reason", trigger)
}

// ExternalReference is the associated data of the tenant's reference for a trigger.
func ExternalReference(o owner.Ref, trigger scalar.ID) AssociatedData {
	return ofTrigger(o, "external_reference", trigger)
}

func ofTrigger(o owner.Ref, field string, trigger scalar.ID) AssociatedData {
	return AssociatedData{o.String(), field, "trigger/" + trigger.String()}
}

// ProposalReason is the associated data of the reason why a proposal about an owner was rejected or withdrawn. With the zero Ref, the
// proposal is about no owner, and the venue's key is used.
func ProposalReason(o owner.Ref, proposal scalar.ID) AssociatedData {
	if o == (owner.Ref{}) {
		return AssociatedData{"venue", "reason", "proposal/" + proposal.String()}
	}
	return AssociatedData{o.String(), "reason", "proposal/" + proposal.String()}
}

// DeliveryResponse is the associated data of a receiver's response to a delivery.
func DeliveryResponse(o owner.Ref, delivery scalar.ID) AssociatedData {
	return AssociatedData{o.String(), "response", "delivery/" + delivery.String()}
}

// The associated data below uses the venue's key.

// ErasureReason is the associated data of the reason why an owner is erased, held or released. It outlives the owner's key.
func ErasureReason(o owner.Ref) AssociatedData {
	return AssociatedData{o.String(), "reason", "erasure"}
}

// WebhookKey is the associated data of the private key that signs a webhook's deliveries.
func WebhookKey(webhook scalar.ID) AssociatedData {
	return AssociatedData{"webhook/" + webhook.String(), "private_key", "webhook"}
}

// TestResponse is the associated data of a receiver's response to the delivery of a test event.
func TestResponse(tenant string, delivery scalar.ID) AssociatedData {
	return AssociatedData{"tenant/" + tenant, "response", "delivery/" + delivery.String()}
}

// ExternalID returns a keyed hash of a tenant's id for an owner. The hash finds the owner without revealing the id.
func (b *Box) ExternalID(tenant string, of owner.Type, externalID string) []byte {
	return MAC(b.Derive("external id "+tenant), []byte(string(of)+"/"+externalID))
}
