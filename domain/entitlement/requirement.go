package entitlement

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Pinned is a questionnaire of a definition with the version that was the newest when the trigger became ongoing.
type Pinned struct {
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	Version         int       `json:"version_number"`
}

// Request asks for more than the definition does: for information by questionnaires, which only a later response gives.
type Request struct {
	ID             scalar.ID   `json:"id"`
	Sequence       int64       `json:"sequence"` // of the record that made it
	Questionnaires []scalar.ID `json:"questionnaire_ids"`
}

// Video is where the video identification of a trigger stands.
type Video string

// The states of a video identification.
const (
	NoVideo     Video = ""
	VideoAsked  Video = "asked"
	VideoPassed Video = "passed"
)

// Needs is what a trigger asks of its owner, as far as it was pinned or requested.
type Needs struct {
	Pinned   []Pinned  `json:"questionnaires"` // in the order of the definition
	Requests []Request `json:"requests,omitempty"`
	// VideoPlanned says that the definition has a video identification.
	VideoPlanned bool  `json:"video_identification,omitzero"`
	Video        Video `json:"video,omitempty"`
	// VideoSequence is the sequence of the record that asked for the identification.
	VideoSequence int64 `json:"video_sequence,omitzero"`
}

// Answered is what an owner answered of a questionnaire; the zero value is nothing.
type Answered struct {
	Version  int   // the newest version that was answered
	Sequence int64 // of the record of the latest response, to whichever version
}

// Source is what a requirement comes from.
type Source string

// The sources of requirements.
const (
	FromDefinition Source = "definition"
	FromRequest    Source = "request"
	FromVideo      Source = "video_identification"
)

// Requirement is what is open for one reason: the definition, one request, or the video identification.
type Requirement struct {
	Source         Source      `json:"source"`
	Request        scalar.ID   `json:"request_id,omitzero"`         // of FromRequest
	Sequence       int64       `json:"sequence,omitzero"`           // when it was asked for: 0 for the definition, which comes first
	Questionnaires []scalar.ID `json:"questionnaire_ids,omitempty"` // empty for FromVideo
}

// Open returns what is open, oldest first; answered gives an owner's responses. What the definition asks for is met by a
// response to the pinned version or a newer one, from before the trigger as well; what a request asks for by a response
// after it only.
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

// VideoDue reports whether the identification that the definition plans is to be asked for now: all else is met, and it was
// not asked for yet.
func (n *Needs) VideoDue(open []Requirement) bool {
	return n.VideoPlanned && n.Video == NoVideo && len(open) == 0
}

// Met reports whether nothing is open and nothing is still to be asked for: what an approval needs.
func (n *Needs) Met(open []Requirement) bool { return len(open) == 0 && !n.VideoDue(open) }

// Grew returns the newest requirement with something that was not open before; false if there is none. Its reason is the
// one that the owner is told.
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
