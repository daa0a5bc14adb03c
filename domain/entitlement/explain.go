package entitlement

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The names of the calculations of this package.
const (
	LineDefinitionMet = "definition_met"    // a response meets a questionnaire of the definition
	LineRequestMet    = "request_met"       // a response meets a questionnaire of a request
	LineOpen          = "open_requirements" // as many requirements are open
	LineVideoDue      = "video_identification_due"
	LineMet           = "requirements_met"
	LineApproval      = "automatic_approval"
)

// Explain writes down which of the questionnaires are answered as Open requires it: one line for each. Without a response, the
// version and the sequence are 0.
func (n *Needs) Explain(s *arithmetic.Sheet, party string, answered func(questionnaire scalar.ID) Answered) {
	if !s.On() {
		return
	}
	for _, p := range n.Pinned {
		has := answered(p.QuestionnaireID)
		s.Add(party, LineDefinitionMet, p.QuestionnaireID.String(), "answered_version >= required_version", arithmetic.Truth(has.Version >= p.Version),
			arithmetic.Count("answered_version", int64(has.Version)), arithmetic.Count("required_version", int64(p.Version)))
	}
	for _, r := range n.Requests {
		for _, q := range r.Questionnaires {
			has := answered(q)
			s.Add(party, LineRequestMet, q.String()+" after "+strconv.FormatInt(r.Sequence, 10), "response_sequence > request_sequence",
				arithmetic.Truth(has.Sequence > r.Sequence), arithmetic.Count("response_sequence", has.Sequence), arithmetic.Count("request_sequence", r.Sequence))
		}
	}
}

// ExplainOpen writes down how many requirements are open, and of which source.
func ExplainOpen(s *arithmetic.Sheet, party, subject string, open []Requirement) {
	if !s.On() {
		return
	}
	of := make(map[Source]int64)
	for _, r := range open {
		of[r.Source]++
	}
	s.Add(party, LineOpen, subject, "open_of_the_definition + open_requests + open_video_identification", strconv.Itoa(len(open)),
		arithmetic.Count("open_of_the_definition", of[FromDefinition]), arithmetic.Count("open_requests", of[FromRequest]),
		arithmetic.Count("open_video_identification", of[FromVideo]))
}

// ExplainVideo writes down VideoDue.
func (n *Needs) ExplainVideo(s *arithmetic.Sheet, party string, open []Requirement) {
	if !n.VideoPlanned || !s.On() {
		return
	}
	s.Add(party, LineVideoDue, "", "requested_before = 0 and open_requirements = 0", arithmetic.Truth(n.VideoDue(open)),
		arithmetic.Flag("requested_before", n.Video != NoVideo), arithmetic.Count("open_requirements", int64(len(open))))
}

// met returns the formula of Met and its values.
func (n *Needs) met(open []Requirement) (formula string, values []arithmetic.Value) {
	return "open_requirements = 0 and video_identification_due = 0", []arithmetic.Value{
		arithmetic.Count("open_requirements", int64(len(open))), arithmetic.Flag("video_identification_due", n.VideoDue(open))}
}

// ExplainMet writes down Met.
func (n *Needs) ExplainMet(s *arithmetic.Sheet, party string, open []Requirement) {
	if !s.On() {
		return
	}
	formula, values := n.met(open)
	s.Add(party, LineMet, "", formula, arithmetic.Truth(n.Met(open)), values...)
}

// ExplainApproval writes down whether the rules approve a trigger.
func (n *Needs) ExplainApproval(s *arithmetic.Sheet, party string, by Approval, open []Requirement) {
	if !s.On() {
		return
	}
	formula, values := n.met(open)
	s.Add(party, LineApproval, "", "approval_is_automatic = 1 and "+formula, arithmetic.Truth(by == Automatic && n.Met(open)),
		append([]arithmetic.Value{arithmetic.Flag("approval_is_automatic", by == Automatic)}, values...)...)
}
