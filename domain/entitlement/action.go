package entitlement

import "slices"

// Action is what moves a trigger.
type Action string

// The actions. Start is the venue's own; the others are an operator's, or a rule's in his place: a deadline terminates, an
// erasure terminates, the last met requirement approves.
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

// Actions lists all actions, in the order of a case.
func Actions() []Action {
	return []Action{Start, RequestInformation, RequestVideoIdentification, CompleteVideoIdentification, Block, Release, Approve, Reject,
		Cancel, Terminate, FailTrigger}
}

// transition is what an action does from the states that it is allowed in.
type transition struct {
	from   []Status
	to     Status
	result Result
}

// transitions is the whole of what may happen to a trigger. What keeps it ongoing changes its requirements.
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

// Next returns where an action leads from a state, and with which result; false where the state does not allow it.
func Next(from Status, a Action) (Status, Result, bool) {
	t, known := transitions[a]
	if !known || !slices.Contains(t.from, from) {
		return from, NoResult, false
	}
	return t.to, t.result, true
}
