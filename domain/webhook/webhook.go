// Package webhook defines webhooks and deliveries: event types, the schedule of retries, and the states of a delivery. The
// sender (package handlers/webhooks) defines the content and the signature of a request.
package webhook

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// EventType is the type of an event that receivers are told of.
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

// ParseEventType reads the name of a type.
func ParseEventType(s string) (EventType, bool) {
	return EventType(s), slices.Contains(EventTypes(), EventType(s))
}

// NamesTrigger reports whether the body of such an event names the trigger and its entitlement. Requirements are an owner's,
// over all its triggers.
func (t EventType) NamesTrigger() bool {
	return t == RequirementsVid || t == EntitlementCompleted || t == EntitlementFailed
}

// MaxPerTenant is how many registrations a tenant may have.
const MaxPerTenant = 20

// Selection is which events a registration wants.
type Selection struct {
	All   bool        // with it, no types are kept: those of the future count too
	Types []EventType // without repetition
}

// Wants reports whether an event of the type is delivered.
func (s Selection) Wants(t EventType) bool { return s.All || slices.Contains(s.Types, t) }

// Status is where a delivery stands.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"   // not tried since it was made, or replayed
	Retrying  Status = "retrying"  // tried, and waiting for the next time
	Delivered Status = "delivered" // acknowledged
	Dead      Status = "dead"      // tried as often as the schedule has it
	Canceled  Status = "canceled"  // its registration is gone, or its owner erased
)

// IsOpen reports whether a delivery is still to be tried.
func (s Status) IsOpen() bool { return s == Pending || s == Retrying }

// EgressFailed is the code of an attempt that never came as far as the receiver, since the venue's own way out failed. It is told
// and tried again as every other, but the receiver does not fail by it.
const EgressFailed = "EGRESS_FAILED"

// ReceiverFailed reports whether an attempt failed by its receiver. The error is what the attempt says of why no answer came.
func ReceiverFailed(acknowledged bool, failure string) bool {
	code, _, _ := strings.Cut(failure, ":")
	return !acknowledged && code != EgressFailed
}

// DisableAfter is how long all deliveries of a registration must have failed before no more are tried.
const DisableAfter = 5 * scalar.Day
