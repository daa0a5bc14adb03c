package entitlement

import "slices"

// Action is an input to the state machine of a trigger.
type Action string

// The actions. Start is given by the venue. The others are given by an operator or by a rule: a missed deadline and an
// erasure terminate, and the last met requirement approves.
const (
	Start                       Action = "start"
	RequestInformation          Action = "request_information"
	RequestVideoIdentification  Action = "request_video_identification"
	CompleteVideoIdentification Action = "complete_video_identification"
	Block                       Action = "block"
	Release                     Action = "release"
	Approve                     Action = "approve"
	Reject                      Action = "reject"
	Cancel                      Action = "cancel"
	Terminate                   Action = "terminate"
	FailTrigger                 Action = "fail"
)

// Actions lists all actions in their usual order within a case.
func Actions() []Action {
	return []Action{Start, RequestInformation, RequestVideoIdentification, CompleteVideoIdentification, Block, Release, Approve, Reject,
		Cancel, Terminate, FailTrigger}
}

// transition is the effect of an action: the states that allow it, the next state, and the result.
type transition struct {
	from   []Status
	to     Status
	result Result
}

// transitions lists all allowed transitions of a trigger. An action that leaves a trigger ongoing changes its
// requirements.
var transitions = map[Action]transition{
	Start:                       {[]Status{Pending}, Ongoing, NoResult},
	RequestInformation:          {[]Status{Ongoing}, Ongoing, NoResult},
	RequestVideoIdentification:  {[]Status{Ongoing}, Ongoing, NoResult},
	CompleteVideoIdentification: {[]Status{Ongoing}, Ongoing, NoResult},
	Block:                       {[]Status{Ongoing}, Blocked, NoResult},
	Release:                     {[]Status{Blocked}, Ongoing, NoResult},
	Approve:                     {[]Status{Ongoing}, Finished, Success},
	Reject:                      {[]Status{Ongoing}, Finished, Fail},
	FailTrigger:                 {[]Status{Pending, Ongoing}, Failed, Fail},
	Cancel:                      {[]Status{Pending, Ongoing, Blocked}, Canceled, Fail},
	Terminate:                   {[]Status{Pending, Ongoing, Blocked}, Terminated, Fail},
}

// Next returns the state and the result after an action. It returns false if the state does not allow the action.
func Next(from Status, a Action) (Status, Result, bool) {
	t, known := transitions[a]
	if !known || !slices.Contains(t.from, from) {
		return from, NoResult, false
	}
	return t.to, t.result, true
}
