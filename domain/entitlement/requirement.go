package entitlement

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Pinned is a questionnaire of a definition with its newest version at the time when the trigger became ongoing.
type Pinned struct {
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	Version         int       `json:"version_number"`
}

// Request asks for information beyond the definition. Only responses that come after the request answer its
// questionnaires.
type Request struct {
	ID             scalar.ID   `json:"id"`
	Sequence       int64       `json:"sequence"` // of the record that created the request
	Questionnaires []scalar.ID `json:"questionnaire_ids"`
}

// Video is the state of the video identification of a trigger.
type Video string

// The states of a video identification.
const (
	NoVideo     Video = ""
	VideoAsked  Video = "asked"
	VideoPassed Video = "passed"
)

// Needs are the pinned and requested requirements of a trigger, met or not.
type Needs struct {
	Pinned   []Pinned  `json:"questionnaires"` // in the order of the definition
	Requests []Request `json:"requests,omitempty"`
	// VideoPlanned says that the definition includes a video identification.
	VideoPlanned bool  `json:"video_identification,omitzero"`
	Video        Video `json:"video,omitempty"`
	// VideoSequence is the sequence of the record that requested the identification.
	VideoSequence int64 `json:"video_sequence,omitzero"`
}

// Answered describes an owner's responses to a questionnaire. The zero value means that there are none.
type Answered struct {
	Version  int   // the newest version that was answered
	Sequence int64 // of the record of the latest response, to any version
}

// Source is the origin of a requirement.
type Source string

// The sources of requirements.
const (
	FromDefinition Source = "definition"
	FromRequest    Source = "request"
	FromVideo      Source = "video_identification"
)

// Requirement is an open requirement with one origin: the definition, one request, or the video identification.
type Requirement struct {
	Source         Source      `json:"source"`
	Request        scalar.ID   `json:"request_id,omitzero"`         // set for FromRequest
	Sequence       int64       `json:"sequence,omitzero"`           // of the requesting record; 0 for the definition, the first
	Questionnaires []scalar.ID `json:"questionnaire_ids,omitempty"` // empty for FromVideo
}

// Open returns the open requirements, oldest first. answered returns an owner's responses to a questionnaire. A response
// to the pinned version or a newer one meets a requirement of the definition, even if it is older than the trigger. Only
// a response after a request meets the request.
func (n *Needs) Open(answered func(questionnaire scalar.ID) Answered) []Requirement {
	var out []Requirement
	var missing []scalar.ID
	for _, p := range n.Pinned {
		if answered(p.QuestionnaireID).Version < p.Version {
			missing = append(missing, p.QuestionnaireID)
		}
	}
	if len(missing) > 0 {
		out = append(out, Requirement{Source: FromDefinition, Questionnaires: missing})
	}
	for _, r := range n.Requests {
		var missing []scalar.ID
		for _, q := range r.Questionnaires {
			if answered(q).Sequence <= r.Sequence {
				missing = append(missing, q)
			}
		}
		if len(missing) > 0 {
			out = append(out, Requirement{Source: FromRequest, Request: r.ID, Sequence: r.Sequence, Questionnaires: missing})
		}
	}
	if n.Video == VideoAsked {
		out = append(out, Requirement{Source: FromVideo, Sequence: n.VideoSequence})
	}
	slices.SortStableFunc(out, func(a, b Requirement) int { return int(min(max(a.Sequence-b.Sequence, -1), 1)) })
	return out
}

// VideoDue reports whether the planned identification must be requested now: all other requirements are met, and it was
// not requested before.
func (n *Needs) VideoDue(open []Requirement) bool {
	return n.VideoPlanned && n.Video == NoVideo && len(open) == 0
}

// Met reports whether a trigger can be approved: no requirement is open, and no video identification remains to be
// requested.
func (n *Needs) Met(open []Requirement) bool { return len(open) == 0 && !n.VideoDue(open) }

// Grew returns the newest requirement that contains something which was not open before, or false. The owner is notified
// of this requirement's source.
func Grew(before, after []Requirement) (Requirement, bool) {
	for _, r := range slices.Backward(after) {
		i := slices.IndexFunc(before, func(b Requirement) bool {
			return b.Source == r.Source && b.Request == r.Request && b.Sequence == r.Sequence
		})
		if i < 0 {
			return r, true
		}
		for _, q := range r.Questionnaires {
			if !slices.Contains(before[i].Questionnaires, q) {
				return r, true
			}
		}
	}
	return Requirement{}, false
}
