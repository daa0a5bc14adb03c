// Package webhook defines webhooks and deliveries: event types, the retry schedule, and the states of a delivery. The
// sender (package handlers/webhooks) defines the content and the signature of a request.
package webhook

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// EventType is the type of an event that is delivered to receivers.
type EventType string

// The types of events.
const (
	RequirementsQuestionnaire EventType = "requirementsQuestionnaire"
	RequirementsVid           EventType = "requirementsVid"
	EntitlementCompleted      EventType = "entitlementCompleted"
	EntitlementFailed         EventType = "entitlementFailed"
	DocumentExpiring          EventType = "documentExpiring"
	Test                      EventType = "test"
)

// EventTypes lists all types.
func EventTypes() []EventType {
	return []EventType{RequirementsQuestionnaire, RequirementsVid, EntitlementCompleted, EntitlementFailed, DocumentExpiring, Test}
}

// ParseEventType parses the name of an event type.
func ParseEventType(s string) (EventType, bool) {
	return EventType(s), slices.Contains(EventTypes(), EventType(s))
}

// NamesTrigger reports whether the body of an event of this type names the trigger and its entitlement. Events about
// questionnaires concern the owner across all triggers.
func (t EventType) NamesTrigger() bool {
	return t == RequirementsVid || t == EntitlementCompleted || t == EntitlementFailed
}

// MaxPerTenant is the greatest number of webhook registrations of a tenant.
const MaxPerTenant = 20

// Selection is the set of events that a registration receives.
type Selection struct {
	All   bool        // includes types that are added later; Types is then empty
	Types []EventType // without duplicates
}

// Wants reports whether the registration receives events of the type.
func (s Selection) Wants(t EventType) bool { return s.All || slices.Contains(s.Types, t) }

// Status is the state of a delivery.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"   // not tried since it was created or replayed
	Retrying  Status = "retrying"  // failed at least once and waits for the next attempt
	Delivered Status = "delivered" // the receiver acknowledged it
	Dead      Status = "dead"      // all attempts of the schedule failed
	Canceled  Status = "canceled"  // its registration was deleted or its owner erased
)

// IsOpen reports whether more attempts will follow.
func (s Status) IsOpen() bool { return s == Pending || s == Retrying }

// EgressFailed is the error code of an attempt that did not reach the receiver because the venue's own outgoing
// connection failed. The attempt is reported and retried like any other, but does not count as a failure of the
// receiver.
const EgressFailed = "EGRESS_FAILED"

// ReceiverFailed reports whether an attempt failed because of the receiver. failure is the attempt's error: a code,
// optionally followed by a colon and details.
func ReceiverFailed(acknowledged bool, failure string) bool {
	code, _, _ := strings.Cut(failure, ":")
	return !acknowledged && code != EgressFailed
}

// DisableAfter is the time after which a registration is disabled if all deliveries have failed.
const DisableAfter = 5 * scalar.Day
