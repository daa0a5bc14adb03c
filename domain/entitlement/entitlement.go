// Package entitlement says what an owner can ask for, and how a case of it goes: definitions, triggers with their states,
// and the requirements that are still open.
//
// A trigger moves by actions only. What it needs, its definition and the versions of the questionnaires, is pinned when
// it becomes ongoing, so a later change of the definition touches later triggers only.
package entitlement

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Approval says who approves a trigger once all its requirements are met.
type Approval string

// The ways of approval.
const (
	Automatic Approval = "automatic" // in the record that meets the last requirement
	Manual    Approval = "manual"    // an operator
)

// Definition is a capability that persons or corporates can ask for.
type Definition struct {
	ID             scalar.ID  `json:"id"`
	Name           string     `json:"name"`
	Description    string     `json:"description"`
	OwnerType      owner.Type `json:"owner_type"`
	Questionnaires []Item     `json:"questionnaires"` // by position
	Approval       Approval   `json:"approval"`
	// VideoIdentification asks for a video identification once all questionnaires are answered.
	VideoIdentification bool `json:"video_identification"`
	// DeadlineSeconds is how long a trigger may stay open, counted from its creation; 0 is for ever.
	DeadlineSeconds int64 `json:"deadline_seconds"`
	// OpensTradingAccount has a trading account opened for the owner of a finished trigger.
	OpensTradingAccount bool        `json:"opens_trading_account"`
	Created             scalar.Time `json:"created_at"`
	Updated             scalar.Time `json:"updated_at"`
}

// Item is a questionnaire that a definition asks for.
type Item struct {
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	Position        int       `json:"position"`
}

// Status is where a trigger stands.
type Status string

// The states of a trigger.
const (
	Pending    Status = "pending"
	Ongoing    Status = "ongoing"
	Blocked    Status = "blocked"
	Finished   Status = "finished"
	Failed     Status = "failed"
	Canceled   Status = "canceled"
	Terminated Status = "terminated"
)

// IsOpen reports whether a trigger can still move.
func (s Status) IsOpen() bool { return s == Pending || s == Ongoing || s == Blocked }

// Result says how a trigger ended.
type Result string

// The results. A trigger has one in a terminal state only.
const (
	NoResult Result = ""
	Success  Result = "success"
	Fail     Result = "fail"
)
