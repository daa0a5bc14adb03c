package onboarding

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands and events about questionnaires.
const (
	CommandCreateQuestionnaire    = "questionnaire.create"
	CommandChangeQuestionnaire    = "questionnaire.change"
	CommandAddVersion             = "questionnaire.add_version"
	CommandPublishQuestionnaire   = "questionnaire.publish"
	CommandUnpublishQuestionnaire = "questionnaire.unpublish"

	TypeQuestionnaireCreated     = "questionnaire.created"
	TypeQuestionnaireChanged     = "questionnaire.changed"
	TypeVersionAdded             = "questionnaire.version_added"
	TypeQuestionnairePublished   = "questionnaire.published"
	TypeQuestionnaireUnpublished = "questionnaire.unpublished"
)

const (
	maxName        = 255    // characters
	maxDescription = 10_000 // characters
)

// CreateQuestionnaire asks to create a questionnaire, unpublished and without versions.
//
// Event: questionnaire.created. Refusals: Invalid; Conflict OWNER_RESTRICTED.
type CreateQuestionnaire struct {
	Name        string
	Description string
	OwnerType   owner.Type
	OwnerTypeID scalar.ID // zero: for all owners of the type
}

// CommandType returns the type of the command.
func (*CreateQuestionnaire) CommandType() string { return CommandCreateQuestionnaire }

func (*CreateQuestionnaire) givenBy() ActorKind { return ByOperator }

func (p *CreateQuestionnaire) decide(d *draft) error {
	if err := checkNamed(p.Name, p.Description, p.OwnerType); err != nil {
		return err
	}
	if !p.OwnerTypeID.IsZero() {
		o, known := d.state.Owner(owner.Ref{Type: p.OwnerType, ID: p.OwnerTypeID})
		switch {
		case !known || o.State == owner.Erased:
			return decide.InvalidField("owner_type_id", "there is no such "+string(p.OwnerType))
		case o.State == owner.Restricted:
			return ownerRestricted()
		}
	}
	d.add(&QuestionnaireCreated{questionnaire.Questionnaire{ID: d.nextID(), Name: p.Name, Description: p.Description, OwnerType: p.OwnerType,
		OwnerTypeID: p.OwnerTypeID, Created: d.at.Time}})
	return nil
}

func checkNamed(name, description string, t owner.Type) error {
	switch {
	case strings.TrimSpace(name) == "" || !isText(name, maxName):
		return decide.InvalidField("name", "the name must be 1 to 255 characters without control characters")
	case !isText(strings.ReplaceAll(description, "\n", " "), maxDescription):
		return decide.InvalidField("description", "the description must be at most 10000 characters without control characters but line breaks")
	case !t.Valid():
		return decide.InvalidField("owner_type", "must be person or corporate")
	}
	return nil
}

func isText(s string, limit int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= limit && !strings.ContainsFunc(s, unicode.IsControl)
}

// ChangeQuestionnaire asks to change the name or description of a questionnaire. Members that are nil stay unchanged.
//
// Event: questionnaire.changed. Refusals: NotFound QUESTIONNAIRE_NOT_FOUND; Conflict OWNER_RESTRICTED.
type ChangeQuestionnaire struct {
	ID          scalar.ID
	Name        *string
	Description *string
}

// CommandType returns the type of the command.
func (*ChangeQuestionnaire) CommandType() string { return CommandChangeQuestionnaire }

func (*ChangeQuestionnaire) givenBy() ActorKind { return ByOperator }

func (p *ChangeQuestionnaire) decide(d *draft) error {
	q, err := d.changeable(p.ID)
	if err != nil {
		return err
	}
	changed := *q.Questionnaire
	if p.Name != nil {
		changed.Name = *p.Name
	}
	if p.Description != nil {
		changed.Description = *p.Description
	}
	if err := checkNamed(changed.Name, changed.Description, changed.OwnerType); err != nil {
		return err
	}
	d.add(&QuestionnaireChanged{changed})
	return nil
}

// AddVersion asks to add a version to a questionnaire. The decision assigns the ids of questions and options.
//
// Event: questionnaire.version_added. Refusals: NotFound QUESTIONNAIRE_NOT_FOUND; Invalid; Conflict OWNER_RESTRICTED.
type AddVersion struct {
	QuestionnaireID scalar.ID
	Questions       []questionnaire.Question
}

// CommandType returns the type of the command.
func (*AddVersion) CommandType() string { return CommandAddVersion }

func (*AddVersion) givenBy() ActorKind { return ByOperator }

func (p *AddVersion) decide(d *draft) error {
	q, err := d.changeable(p.QuestionnaireID)
	if err != nil {
		return err
	}
	if faults := questionnaire.CheckDraft(p.Questions); len(faults) > 0 {
		return decide.InvalidField("questions", faults[0].Message)
	}
	v := questionnaire.Version{ID: d.nextID(), Number: len(q.versions) + 1, QuestionnaireID: p.QuestionnaireID, Created: d.at.Time,
		Questions: cloneQuestions(p.Questions)}
	slices.SortFunc(v.Questions, func(a, b questionnaire.Question) int { return cmp.Compare(a.Position, b.Position) })
	n := 0
	next := func() scalar.ID { n++; return d.at.Derive(n) } // indices that no event uses: this record has only one event
	for i := range v.Questions {
		question := &v.Questions[i]
		question.ID = next()
		slices.SortFunc(question.Options, func(a, b questionnaire.Option) int { return cmp.Compare(a.Position, b.Position) })
		for j := range question.Options {
			question.Options[j].ID = next()
		}
	}
	d.add(&VersionAdded{v})
	return nil
}

func cloneQuestions(questions []questionnaire.Question) []questionnaire.Question {
	out := slices.Clone(questions)
	for i := range out {
		out[i].Options = append([]questionnaire.Option{}, out[i].Options...)
	}
	return out
}

// PublishQuestionnaire asks to publish a version, so that clients can answer it.
//
// Event: questionnaire.published. Refusals: NotFound QUESTIONNAIRE_NOT_FOUND, QUESTIONNAIRE_VERSION_NOT_FOUND; Conflict
// QUESTIONNAIRE_VERSION_PUBLISHED, OWNER_RESTRICTED.
type PublishQuestionnaire struct {
	ID     scalar.ID
	Number int // 0: the newest version
}

// CommandType returns the type of the command.
func (*PublishQuestionnaire) CommandType() string { return CommandPublishQuestionnaire }

func (*PublishQuestionnaire) givenBy() ActorKind { return ByOperator }

func (p *PublishQuestionnaire) decide(d *draft) error {
	q, err := d.changeable(p.ID)
	if err != nil {
		return err
	}
	number := p.Number
	if number == 0 {
		number = len(q.versions)
	}
	if number < 1 || number > len(q.versions) {
		return decide.Refuse(decide.NotFound, "QUESTIONNAIRE_VERSION_NOT_FOUND", "the questionnaire has no such version")
	}
	if q.published[number-1] {
		return decide.Refuse(decide.Conflict, "QUESTIONNAIRE_VERSION_PUBLISHED", "the version is published already")
	}
	d.add(&QuestionnairePublished{Questionnaire: q.as(true), VersionID: q.versions[number-1].ID, Number: number, Time: d.at.Time})
	return nil
}

// UnpublishQuestionnaire asks to hide a questionnaire and all its versions from clients.
//
// Event: questionnaire.unpublished. Refusals: NotFound QUESTIONNAIRE_NOT_FOUND; Conflict QUESTIONNAIRE_NOT_PUBLISHED,
// OWNER_RESTRICTED; Conflict QUESTIONNAIRE_REQUIRED while a trigger waits for a response.
type UnpublishQuestionnaire struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*UnpublishQuestionnaire) CommandType() string { return CommandUnpublishQuestionnaire }

func (*UnpublishQuestionnaire) givenBy() ActorKind { return ByOperator }

func (p *UnpublishQuestionnaire) decide(d *draft) error {
	q, err := d.changeable(p.ID)
	switch {
	case err != nil:
		return err
	case !q.IsPublished:
		return decide.Refuse(decide.Conflict, "QUESTIONNAIRE_NOT_PUBLISHED", "the questionnaire is not published")
	case d.state.required[p.ID] > 0:
		return decide.Refuse(decide.Conflict, "QUESTIONNAIRE_REQUIRED", "an open requirement names the questionnaire")
	}
	d.add(&QuestionnaireUnpublished{Questionnaire: q.as(false), Time: d.at.Time})
	return nil
}

func (d *draft) questionnaire(id scalar.ID) (*versioned, error) {
	q, known := d.state.questionnaires[id]
	if !known {
		return nil, decide.Refuse(decide.NotFound, "QUESTIONNAIRE_NOT_FOUND", "there is no such questionnaire")
	}
	return q, nil
}

// changeable returns a questionnaire that an operator may change. A questionnaire for a single owner is part of that
// owner's data, which must not be restricted.
func (d *draft) changeable(id scalar.ID) (*versioned, error) {
	q, err := d.questionnaire(id)
	if err != nil || q.IsGeneric() {
		return q, err
	}
	if o, known := d.state.Owner(owner.Ref{Type: q.OwnerType, ID: q.OwnerTypeID}); known && o.State == owner.Restricted {
		return nil, ownerRestricted()
	}
	return q, nil
}

// QuestionnaireCreated says that a questionnaire was created.
type QuestionnaireCreated struct{ questionnaire.Questionnaire }

// EventType returns questionnaire.created.
func (*QuestionnaireCreated) EventType() string { return TypeQuestionnaireCreated }

// QuestionnaireChanged contains the complete questionnaire after the change.
type QuestionnaireChanged struct{ questionnaire.Questionnaire }

// EventType returns questionnaire.changed.
func (*QuestionnaireChanged) EventType() string { return TypeQuestionnaireChanged }

// VersionAdded contains a new version, which never changes.
type VersionAdded struct{ questionnaire.Version }

// EventType returns questionnaire.version_added.
func (*VersionAdded) EventType() string { return TypeVersionAdded }

// QuestionnairePublished says that clients can answer a version. It contains the complete questionnaire after the
// change.
type QuestionnairePublished struct {
	questionnaire.Questionnaire
	VersionID scalar.ID   `json:"questionnaire_version_id"`
	Number    int         `json:"version_number"`
	Time      scalar.Time `json:"published_at"`
}

// EventType returns questionnaire.published.
func (*QuestionnairePublished) EventType() string { return TypeQuestionnairePublished }

// QuestionnaireUnpublished says that no version of a questionnaire is published any more. It contains the complete
// questionnaire after the change.
type QuestionnaireUnpublished struct {
	questionnaire.Questionnaire
	Time scalar.Time `json:"unpublished_at"`
}

// EventType returns questionnaire.unpublished.
func (*QuestionnaireUnpublished) EventType() string { return TypeQuestionnaireUnpublished }

// versioned is a questionnaire with its versions.
type versioned struct {
	*questionnaire.Questionnaire
	versions  []*questionnaire.Version // number 1 first
	published []bool                   // whether each version is published
}

// newest returns the newest published version, or nil.
func (q *versioned) newest() *questionnaire.Version {
	for i, v := range slices.Backward(q.versions) {
		if q.published[i] {
			return v
		}
	}
	return nil
}

func (s *State) setQuestionnaire(q questionnaire.Questionnaire) {
	if known, ok := s.questionnaires[q.ID]; ok {
		known.Questionnaire = &q
		return
	}
	s.questionnaires[q.ID] = &versioned{Questionnaire: &q}
	s.questionnaireOrder = append(s.questionnaireOrder, q.ID)
}

func (s *State) addVersion(v questionnaire.Version) {
	q, known := s.questionnaires[v.QuestionnaireID]
	if !known {
		return
	}
	v.Questions = cloneQuestions(v.Questions)
	q.versions, q.published = append(q.versions, &v), append(q.published, false)
}

func (f *fold) questionnairePublished(e *QuestionnairePublished) {
	if q, known := f.questionnaires[e.ID]; known && e.Number >= 1 && e.Number <= len(q.versions) {
		q.published[e.Number-1] = true
		f.setQuestionnaire(e.Questionnaire)
	}
}

func (f *fold) questionnaireUnpublished(e *QuestionnaireUnpublished) {
	if q, known := f.questionnaires[e.ID]; known {
		clear(q.published)
		f.setQuestionnaire(e.Questionnaire)
	}
}

// as returns a copy of the questionnaire with IsPublished set.
func (q *versioned) as(published bool) questionnaire.Questionnaire {
	changed := *q.Questionnaire
	changed.IsPublished = published
	return changed
}

// Questionnaire returns a questionnaire, published or not, and its newest published version or nil.
func (s *State) Questionnaire(id scalar.ID) (*questionnaire.Questionnaire, *questionnaire.Version, bool) {
	q, known := s.questionnaires[id]
	if !known {
		return nil, nil, false
	}
	return q.Questionnaire, q.newest(), true
}
