package readmodels

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// CompareOnboarding is Compare for the onboarding journal. It compares owners and their erasures, documents,
// questionnaires and their versions, entitlements, triggers with their requests and open requirements, webhooks,
// deliveries, and the numbers of responses and notices. It does not compare sealed data, which a fold does not contain.
func CompareOnboarding(ctx context.Context, pool *pgxpool.Pool, s *domain.State, sequence int64) ([]string, error) {
	c := &onboardingComparison{comparison{ctx: ctx, pool: pool, sequence: sequence}, s}
	for _, part := range []func() error{c.owners, c.erasures, c.retention, c.documents, c.questionnaires, c.versions, c.entitlements, c.responses,
		c.triggers, c.requests, c.webhooks, c.deliveries, c.notices} {
		if err := part(); err != nil {
			return nil, fmt.Errorf("comparing the read models with the log: %w", err)
		}
	}
	return c.differences, nil
}

type onboardingComparison struct {
	comparison
	state *domain.State
}

// same is comparison.same, but reports the values as JSON. The Go format would print nothing but the name of an owner.
func (c *onboardingComparison) same(what string, rows, state any) {
	if reflect.DeepEqual(rows, state) {
		return
	}
	var texts [2]string
	for i, v := range []any{rows, state} {
		b, err := json.Marshal(v)
		if err != nil {
			b = fmt.Appendf(nil, "%+v", v)
		}
		texts[i] = string(b)
	}
	if texts[0] == texts[1] {
		texts[0], texts[1] = fmt.Sprintf("%#v", rows), fmt.Sprintf("%#v", state)
	}
	c.comparison.same(what, texts[0], texts[1])
}

// each calls a function with every row of a table, and returns the number of rows. They must be at the state's
// position.
func each[T any](c *comparison, table *projections.Table[T], do func(row *T)) (n int, err error) {
	asOf, err := table.Each(c.ctx, c.pool, func(row *T) { n++; do(row) })
	_, err = read(c, n, asOf, err)
	return n, err
}

func (c *onboardingComparison) owners() error {
	n, err := each(&c.comparison, onboarding.AllOwners(), func(r *onboarding.Owner) {
		o, _ := c.state.Owner(r.Ref)
		c.same("owner "+r.Ref.String(), &r.Owner, o)
		c.same("the hold of "+r.Ref.String(), r.Held, c.state.Held(r.Ref))
		if _, ends := c.state.Erasure(r.Ref); ends == (r.State == owner.Active) {
			c.same("the end of "+r.Ref.String(), r.State, ends)
		}
	})
	c.same("the number of owners", n, c.state.Totals().Owners)
	return err
}

func (c *onboardingComparison) erasures() error {
	ends := 0
	n, err := each(&c.comparison, onboarding.AllErasures(), func(r *onboarding.Erasure) {
		e, known := c.state.Erasure(r.Ref)
		if !known {
			e = new(domain.Erasure)
		}
		c.same("the end of "+r.Ref.String(), domain.Erasure{RequestedAt: r.RequestedAt, RequestedBy: r.RequestedBy, Reason: r.Reason,
			RetainUntil: r.RetainUntil, ErasedAt: r.ErasedAt, KeyID: r.KeyID, KeyDestroyed: r.KeyDestroyed, Positions: r.Positions()}, *e)
		if o, _ := c.state.Owner(r.Ref); o != nil {
			c.same("the tenant of the end of "+r.Ref.String(), r.Tenant, o.Tenant)
		}
	})
	if err != nil {
		return err
	}
	_, err = each(&c.comparison, onboarding.AllOwners(), func(r *onboarding.Owner) {
		if r.State != owner.Active {
			ends++
		}
	})
	c.same("the number of ends", n, ends)
	return err
}

func (c *onboardingComparison) retention() error {
	r, set, asOf, err := onboarding.RetentionInForce(c.ctx, c.pool)
	if r, err = read(&c.comparison, r, asOf, err); err != nil {
		return err
	}
	if !set {
		r.Seconds = int64(domain.DefaultRetention / scalar.Second)
	}
	c.same("the retention", scalar.Time(r.Seconds)*scalar.Second, c.state.Retention())
	return nil
}

func (c *onboardingComparison) documents() error {
	n, err := each(&c.comparison, onboarding.AllDocuments(), func(r *onboarding.Document) {
		d, _ := c.state.Document(r.Document.ID)
		c.same("document "+r.Document.ID.String(), &r.Document, d)
		if o, _ := c.state.Owner(r.Ref); o != nil {
			c.same("the tenant of document "+r.Document.ID.String(), r.Tenant, o.Tenant)
		}
	})
	c.same("the number of documents", n, c.state.Totals().Documents)
	return err
}

func (c *onboardingComparison) questionnaires() error {
	n, err := each(&c.comparison, onboarding.AllQuestionnaires(), func(r *onboarding.Questionnaire) {
		q, _, _ := c.state.Questionnaire(r.ID)
		c.same("questionnaire "+r.ID.String(), &r.Questionnaire, q)
	})
	_, known := c.state.Questionnaires(0, 0)
	c.same("the number of questionnaires", n, known)
	return err
}

func (c *onboardingComparison) versions() error {
	found := make(map[scalar.ID]int)
	_, err := each(&c.comparison, onboarding.AllVersions(), func(r *onboarding.Version) {
		found[r.QuestionnaireID]++
		known := c.state.QuestionnaireVersions(r.QuestionnaireID)
		if r.Number < 1 || r.Number > len(known) {
			c.same("version "+r.Version.ID.String(), r.Number, "no such version")
			return
		}
		v := known[r.Number-1]
		c.same("version "+r.Version.ID.String(), &r.Version, v.Version)
		c.same("what is published of version "+r.Version.ID.String(), r.IsPublished, v.Published)
	})
	if err != nil {
		return err
	}
	_, total := c.state.Questionnaires(0, 0)
	all, _ := c.state.Questionnaires(0, total)
	for _, q := range all {
		c.same("the number of versions of "+q.ID.String(), found[q.ID], len(c.state.QuestionnaireVersions(q.ID)))
	}
	return nil
}

func (c *onboardingComparison) entitlements() error {
	n, err := each(&c.comparison, onboarding.AllEntitlements(), func(r *onboarding.Entitlement) {
		e, _ := c.state.Entitlement(r.ID)
		c.same("entitlement "+r.ID.String(), &r.Definition, e)
	})
	_, known := c.state.Entitlements(0, 0)
	c.same("the number of entitlements", n, known)
	return err
}

// answered is the key of an owner's responses to a questionnaire.
type answered struct {
	owner.Ref
	questionnaire scalar.ID
}

func (c *onboardingComparison) responses() error {
	given := make(map[answered]entitlement.Answered)
	_, err := each(&c.comparison, onboarding.AllResponses(), func(r *onboarding.Response) {
		k := answered{r.Ref, r.QuestionnaireID}
		given[k] = entitlement.Answered{Version: max(given[k].Version, r.Number), Sequence: max(given[k].Sequence, r.Sequence)}
	})
	for k, a := range given {
		c.same("what "+k.Ref.String()+" answered of "+k.questionnaire.String(), a, c.state.Answered(k.Ref, k.questionnaire))
	}
	c.same("the number of questionnaires that were answered", len(given), c.state.Totals().Answered)
	return err
}

func (c *onboardingComparison) triggers() error {
	n, err := each(&c.comparison, onboarding.AllTriggers(), func(r *onboarding.Trigger) {
		t, known := c.state.Trigger(r.ID)
		if !known {
			t = new(domain.Trigger)
		}
		want := *t
		want.Needs.Requests = nil // its timeline has them
		for _, open := range []*[]entitlement.Requirement{&want.Open, &r.Open} {
			if len(*open) == 0 {
				*open = nil
			}
		}
		c.same("trigger "+r.ID.String(), r.Trigger, want)
		if o, _ := c.state.Owner(r.Ref); o != nil {
			c.same("the tenant of trigger "+r.ID.String(), r.Tenant, o.Tenant)
		}
	})
	c.same("the number of triggers", n, c.state.Totals().Triggers)
	return err
}

// requests compares the requests for information in the timelines, and checks that every timeline begins with its
// trigger.
func (c *onboardingComparison) requests() error {
	requests, created := make(map[scalar.ID][]entitlement.Request), 0
	_, err := each(&c.comparison, onboarding.AllTriggerEvents(), func(r *onboarding.TriggerEvent) {
		if r.Type == domain.TypeTriggerCreated {
			created++
		}
		if !r.RequestID.IsZero() {
			requests[r.TriggerID] = append(requests[r.TriggerID], entitlement.Request{ID: r.RequestID, Sequence: r.Sequence, Questionnaires: r.Questionnaires})
		}
	})
	if err != nil {
		return err
	}
	c.same("the number of timelines", created, c.state.Totals().Triggers)
	_, err = each(&c.comparison, onboarding.AllTriggers(), func(r *onboarding.Trigger) {
		if t, known := c.state.Trigger(r.ID); known {
			found := requests[r.ID]
			slices.SortFunc(found, func(a, b entitlement.Request) int { return int(a.Sequence - b.Sequence) })
			c.same("what was requested for trigger "+r.ID.String(), found, t.Needs.Requests)
		}
	})
	return err
}

func (c *onboardingComparison) webhooks() error {
	n, err := each(&c.comparison, onboarding.AllWebhooks(), func(r *onboarding.Webhook) {
		w, known := c.state.Webhook(r.ID)
		if !known {
			w = new(domain.Webhook)
		}
		want := *w
		want.Failing = 0 // no row has it
		r.Failing = 0
		c.same("webhook "+r.ID.String(), r.Webhook, want)
	})
	c.same("the number of webhooks", n, c.state.Totals().Webhooks)
	return err
}

func (c *onboardingComparison) deliveries() error {
	retained := 0
	n, err := each(&c.comparison, onboarding.AllDeliveries(), func(r *onboarding.Delivery) {
		v, known := c.state.Delivery(r.ID)
		switch {
		case known:
			want := *v
			want.Before = 0 // its attempts have it
			retained++
			c.same("delivery "+r.ID.String(), r.Domain(), want)
		// The state may have dropped a delivery, but only if it was finished up to the sequence Forgotten.
		case r.Status.IsOpen() || r.Sequence > c.state.Forgotten():
			c.same("delivery "+r.ID.String(), r.Domain(), domain.Delivery{})
		}
		if (r.Status == webhook.Retrying) != (r.NextAttempt != 0) {
			c.same("the next attempt of "+r.ID.String(), r.NextAttempt, r.Status)
		}
	})
	c.same("the number of deliveries", n, c.state.Totals().Deliveries)
	c.same("the number of deliveries that are known", retained, c.state.Totals().Retained)
	return err
}

func (c *onboardingComparison) notices() error {
	last := make(map[owner.Ref]int64)
	_, err := each(&c.comparison, onboarding.AllNotices(), func(r *onboarding.Notice) {
		if r.Ref != (owner.Ref{}) {
			last[r.Ref] = max(last[r.Ref], r.Sequence)
		}
	})
	if err != nil {
		return err
	}
	_, err = each(&c.comparison, onboarding.AllOwners(), func(r *onboarding.Owner) {
		c.same("the number of notices about "+r.Ref.String(), last[r.Ref], c.state.Notices(r.Ref))
	})
	return err
}
