// Package entitlement defines the entitlements that an owner can request and the state machine of a request:
// definitions, triggers with their states, and open requirements.
//
// Only actions change the state of a trigger. When it becomes ongoing, the trigger pins its definition and the versions
// of the questionnaires. Later changes of the definition affect only later triggers.
package entitlement

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Approval says who approves a trigger after all requirements are met.
type Approval string

// The kinds of approval.
const (
	Automatic Approval = "automatic" // in the record that meets the last requirement
	Manual    Approval = "manual"    // by an operator
)

// Definition is an entitlement that persons or corporates can request.
type Definition struct {
	ID             scalar.ID  `json:"id"`
	Name           string     `json:"name"`
	Description    string     `json:"description"`
	OwnerType      owner.Type `json:"owner_type"`
	Questionnaires []Item     `json:"questionnaires"` // by position
	Approval       Approval   `json:"approval"`
	// VideoIdentification says that a video identification is requested after all questionnaires are answered.
	VideoIdentification bool `json:"video_identification"`
	// DeadlineSeconds is the longest time that a trigger may stay open, counted from its creation. 0 means without
	// limit.
	DeadlineSeconds int64 `json:"deadline_seconds"`
	// OpensTradingAccount says that a trading account is opened for the owner when a trigger finishes.
	OpensTradingAccount bool        `json:"opens_trading_account"`
	Created             scalar.Time `json:"created_at"`
	Updated             scalar.Time `json:"updated_at"`
}

// Item is a questionnaire that a definition requires.
type Item struct {
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	Position        int       `json:"position"`
}

// Status is the state of a trigger.
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

// IsOpen reports whether the state is not terminal.
func (s Status) IsOpen() bool { return s == Pending || s == Ongoing || s == Blocked }

// Result is the result of a trigger.
type Result string

// The results. Only a trigger in a terminal state has one.
const (
	NoResult Result = ""
	Success  Result = "success"
	Fail     Result = "fail"
)
