package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
)

// rulesOfInputs is the first number of rules that record the inputs of commands (decide.Decision) and have the events of
// commitments. A build without these rules stops at their activation, and its tools without a state at the first record with
// either.
//
// An input contains no personal data, sealed or not: only ids, names of members, sequences, states and durations.
const rulesOfInputs = 4

// RecordsInputs implements decide.InputRecorder.
func (s *State) RecordsInputs() bool { return s.core.ActiveRules() >= rulesOfInputs }

// partialPayload is a decide.Partial of this journal.
type partialPayload interface {
	decide.Partial
	// input returns what the events of the draft do not carry of the payload, or nil.
	input(d *draft) any
}

var _ = []partialPayload{new(AddResponse), new(RecordAttempt), new(RecordAttempts), new(ReplayDelivery)}

// Reconstruct implements decide.Payload.
func (p *RegisterOwner) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*OwnerRegistered](r); ok {
		*p = RegisterOwner{Ref: e.Ref, ExternalID: e.ExternalID, Fields: e.Fields}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *ChangeOwner) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*OwnerChanged](r); ok {
		*p = ChangeOwner{Ref: e.Ref, Revision: e.Revision - 1, ExternalID: e.ExternalID, Fields: e.Fields}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *AddDocument) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*DocumentAdded](r); ok {
		*p = AddDocument{Ref: e.Ref, ID: e.ID, Category: e.Category, Orientation: e.Orientation, Name: e.Name, Source: e.Source,
			SHA256: e.SHA256, Size: e.Size, Format: e.Format, ValidUntil: e.ValidUntil}
	}
	return nil
}

// Reconstruct implements decide.Payload. To set a member to the value that it has is to leave it unchanged.
func (p *ChangeDocument) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*DocumentChanged](r); ok {
		*p = ChangeDocument{Ref: e.Ref, ID: e.ID, Category: &e.Category, ValidUntil: &e.ValidUntil}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CreateQuestionnaire) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*QuestionnaireCreated](r); ok {
		*p = CreateQuestionnaire{Name: e.Name, Description: e.Description, OwnerType: e.OwnerType, OwnerTypeID: e.OwnerTypeID}
	}
	return nil
}

// Reconstruct implements decide.Payload. To set a member to the value that it has is to leave it unchanged.
func (p *ChangeQuestionnaire) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*QuestionnaireChanged](r); ok {
		*p = ChangeQuestionnaire{ID: e.ID, Name: &e.Name, Description: &e.Description}
	}
	return nil
}

// Reconstruct implements decide.Payload. The questions have their order and their ids already, which the decision repeats.
func (p *AddVersion) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*VersionAdded](r); ok {
		*p = AddVersion{QuestionnaireID: e.QuestionnaireID, Questions: cloneQuestions(e.Questions)}
	}
	return nil
}

// Reconstruct implements decide.Payload. The number of the newest version has the effect of no number.
func (p *PublishQuestionnaire) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*QuestionnairePublished](r); ok {
		p.ID, p.Number = e.ID, e.Number
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *UnpublishQuestionnaire) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*QuestionnaireUnpublished](r); ok {
		p.ID = e.ID
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CreateEntitlement) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*EntitlementCreated](r); ok {
		*p = CreateEntitlement{Name: e.Name, Description: e.Description, OwnerType: e.OwnerType, Questionnaires: e.Questionnaires,
			Approval: e.Approval, VideoIdentification: e.VideoIdentification, DeadlineSeconds: e.DeadlineSeconds,
			OpensTradingAccount: e.OpensTradingAccount}
	}
	return nil
}

// Reconstruct implements decide.Payload. To set a member to the value that it has is to leave it unchanged.
func (p *ChangeEntitlement) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*EntitlementChanged](r); ok {
		*p = ChangeEntitlement{ID: e.ID, Name: &e.Name, Description: &e.Description, Questionnaires: sortedItems(e.Questionnaires),
			Approval: &e.Approval, VideoIdentification: &e.VideoIdentification, DeadlineSeconds: &e.DeadlineSeconds,
			OpensTradingAccount: &e.OpensTradingAccount}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CreateTrigger) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*TriggerCreated](r); ok {
		*p = CreateTrigger{Ref: e.Ref, EntitlementID: e.EntitlementID}
	}
	return nil
}

// Reconstruct implements decide.Payload. The first event is the operator's action. Its consequences follow.
func (p *ActOnTrigger) Reconstruct(r *decide.Evidence) error {
	e, ok := decide.EventOf[*TriggerMoved](r)
	if !ok {
		return nil
	}
	*p = ActOnTrigger{ID: e.ID, Action: e.Action, Code: e.Code, Reason: e.Reason.Sealed, InternalReason: e.InternalReason,
		Outcome: e.Outcome, ExternalReference: e.ExternalReference}
	if e.Request != nil && e.Action == entitlement.RequestInformation {
		p.Questionnaires = slices.Clone(e.Request.Questionnaires)
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *SetRetention) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*RetentionSet](r); ok {
		p.Seconds = e.Seconds
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *EraseOwner) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*OwnerRestricted](r); ok {
		*p = EraseOwner{Ref: e.Ref, Reason: e.Reason}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *HoldOwner) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*OwnerHeld](r); ok {
		*p = HoldOwner{Ref: e.Ref, Reason: e.Reason}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *ReleaseOwner) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*OwnerReleased](r); ok {
		*p = ReleaseOwner{Ref: e.Ref, Reason: e.Reason}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *ConfirmKeyDestroyed) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*KeyDestroyed](r); ok {
		*p = ConfirmKeyDestroyed{Ref: e.Ref, KeyID: e.KeyID}
	}
	return nil
}
