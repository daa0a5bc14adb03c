package launch

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// catalogue is the demo's questionnaire and entitlement for one type of owners.
type catalogue struct {
	ownerType     owner.Type
	questionnaire string // name of the questionnaire
	questions     []questionnaire.Question
	entitlement   string // name of the entitlement
	description   string
}

// presetCatalogues returns the catalogues of the demo, which let a user try the onboarding service immediately. Each
// has one question of every type, and an operator approves the answers.
func presetCatalogues() []catalogue {
	return []catalogue{
		{owner.PersonType, "Know your customer", personQuestions(), "retail_onboarding", "To trade as a person."},
		{owner.CorporateType, "Know your business", corporateQuestions(), "corporate_onboarding", "To trade as a corporate."},
	}
}

func personQuestions() []questionnaire.Question {
	return positioned(
		question("What do you do for a living?", "occupation", questionnaire.Text),
		question("For how many years have you been trading?", "experience_years", questionnaire.Integer),
		question("Do you hold a prominent public office, or does somebody close to you?", "politically_exposed", questionnaire.Bool),
		question("Where do you pay taxes?", "tax_country", questionnaire.Country),
		question("Where does most of your money come from?", "source_of_funds", questionnaire.SingleChoice, "Salary", "Savings", "Inheritance", "Business"),
		question("What have you traded before?", "traded_before", questionnaire.MultipleChoice, "Shares", "Options", "Futures", "Perpetuals"),
		question("Your passport or identity card", "proof_of_identity", questionnaire.Document),
		optional(question("What shows where you live", "proof_of_address", questionnaire.MultipleDocuments)),
	)
}

func corporateQuestions() []questionnaire.Question {
	return positioned(
		question("What does the company do?", "purpose", questionnaire.Text),
		question("How many people work for it?", "employees", questionnaire.Integer),
		question("Is it supervised by a financial authority?", "regulated", questionnaire.Bool),
		question("Where is it incorporated?", "incorporation_country", questionnaire.Country),
		question("Who owns it?", "ownership", questionnaire.SingleChoice, "Its founders", "A family", "The public", "Another company"),
		question("What will it trade for?", "trades_for", questionnaire.MultipleChoice, "Its own account", "Its customers", "Funds"),
		question("An extract of the commercial register", "register_extract", questionnaire.Document),
		optional(question("What shows who is behind it", "beneficial_owners", questionnaire.MultipleDocuments)),
	)
}

func question(label, value string, t questionnaire.QuestionType, options ...string) questionnaire.Question {
	q := questionnaire.Question{Label: label, Value: value, Type: t}
	for i, o := range options {
		q.Options = append(q.Options, questionnaire.Option{Label: o, Value: fmt.Sprintf("option_%d", i+1), Position: i + 1})
	}
	return q
}

func optional(q questionnaire.Question) questionnaire.Question {
	q.IsOptional = true
	return q
}

func positioned(questions ...questionnaire.Question) []questionnaire.Question {
	for i := range questions {
		questions[i].Position = i + 1
	}
	return questions
}

// onboarding creates the demo's questionnaires and entitlements. Fixed keys keep concurrent nodes from creating them
// twice while keys are remembered; later, names identify the existing ones. Once each type of owners has an
// entitlement, the seeding is complete, and objects that operators rename or unpublish are not created again.
func (s *seeder) onboarding(ctx context.Context) error {
	if !s.demo {
		return nil
	}
	fold, err := s.node.Fold(journals.Onboarding)
	if err != nil {
		return err
	}
	done := make(map[owner.Type]bool)
	fold.View(func(state decide.State, _ record.Position) {
		all, _ := state.(*onboarding.State).Entitlements(0, maxSeen)
		for _, e := range all {
			done[e.OwnerType] = true
		}
	})
	for _, c := range presetCatalogues() {
		if done[c.ownerType] {
			continue
		}
		if err := s.catalogue(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}

// maxSeen is larger than the number of objects that interrupted seedings can leave.
const maxSeen = 1000

// catalogue creates the missing objects of one catalogue. Each step finds the objects of the previous steps, made now
// or at an earlier start.
func (s *seeder) catalogue(ctx context.Context, c *catalogue) error {
	made, err := s.made(c)
	if err != nil {
		return err
	}
	key := string(c.ownerType)
	if err := s.once(ctx, !made.id.IsZero(), journals.Onboarding, onboarding.CommandCreateQuestionnaire, key, &onboarding.CreateQuestionnaire{
		Name: c.questionnaire, Description: "Part of the demo: one question of every type.", OwnerType: c.ownerType}); err != nil {
		return err
	}
	if made, err = s.made(c); err != nil {
		return err
	}
	if err := s.once(ctx, len(made.versions) > 0, journals.Onboarding, onboarding.CommandAddVersion, key,
		&onboarding.AddVersion{QuestionnaireID: made.id, Questions: c.questions}); err != nil {
		return err
	}
	published := len(made.versions) > 0 && made.versions[0].Published
	if err := s.once(ctx, published, journals.Onboarding, onboarding.CommandPublishQuestionnaire, key,
		&onboarding.PublishQuestionnaire{ID: made.id, Number: 1}); err != nil {
		return err
	}
	return s.once(ctx, false, journals.Onboarding, onboarding.CommandCreateEntitlement, key, &onboarding.CreateEntitlement{
		Name: c.entitlement, Description: c.description, OwnerType: c.ownerType, Approval: entitlement.Manual,
		Questionnaires: []entitlement.Item{{QuestionnaireID: made.id, Position: 1}}})
}

// madeQuestionnaire is the demo's questionnaire in the journal, or the zero value if it does not exist.
type madeQuestionnaire struct {
	id       scalar.ID
	versions []onboarding.CatalogueVersion
}

func (s *seeder) made(c *catalogue) (out madeQuestionnaire, err error) {
	fold, err := s.node.Fold(journals.Onboarding)
	if err != nil {
		return out, err
	}
	fold.View(func(state decide.State, _ record.Position) {
		all, _ := state.(*onboarding.State).Questionnaires(0, maxSeen)
		for _, q := range all {
			if q.Name == c.questionnaire && q.OwnerType == c.ownerType {
				out = madeQuestionnaire{q.ID, state.(*onboarding.State).QuestionnaireVersions(q.ID)}
			}
		}
	})
	return out, nil
}
