package admin

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// maxPolicyRules is a number of rules of a policy that no journal reaches.
const maxPolicyRules = 100

// governing is the State of a journal that may have a policy.
type governing interface {
	decide.State
	Governed() decide.Governed
	Policy() decide.Policy
	Proposals() []decide.Proposal
}

// fourEyesRoutes returns the routes of policies and proposals.
func (h *Handler) fourEyesRoutes() []rest.Route {
	const proposal = "/four-eyes/:journal/proposals/:id"
	return []rest.Route{
		read("/four-eyes/:journal", h.getPolicy),
		put("/four-eyes/:journal", h.setPolicy),
		read("/four-eyes/:journal/proposals", h.listProposals),
		read(proposal, h.getProposal),
		post(proposal+"/confirm", h.confirmProposal),
		post(proposal+"/reject", h.endProposal(func(id scalar.ID) decide.Payload { return &decide.RejectProposal{ID: id} })),
		post(proposal+"/withdraw", h.endProposal(func(id scalar.ID) decide.Payload { return &decide.WithdrawProposal{ID: id} })),
	}
}

// viewGoverning calls look with the state of the journal that the route names.
func (h *Handler) viewGoverning(c echo.Context, look func(journal string, s governing) error) error {
	journal := rest.Param(c, "journal")
	fold, known := h.cfg.Folds[journal]
	if !known {
		return unknownJournal(journal)
	}
	return rest.View(c, journal, fold, func(s decide.State, _ int64) error {
		g, ok := s.(governing)
		if !ok {
			return unknownJournal(journal)
		}
		return look(journal, g)
	})
}

func unknownJournal(name string) error {
	return problem.NotFound("UNKNOWN_JOURNAL", fmt.Sprintf("There is no journal %q, or it has no policy.", name))
}

func (h *Handler) getPolicy(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	var out wire.Policy
	err := h.viewGoverning(c, func(journal string, s governing) error {
		out = wire.NewPolicy(journal, s.Policy(), decide.PolicyActions(s.Governed()))
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// readPolicy reads a policy from a body.
func readPolicy(body *input.Form) decide.Policy {
	p := decide.Policy{ProposalSeconds: int(body.OptionalInteger("proposal_seconds", decide.MinProposalSeconds, decide.MaxProposalSeconds).Or(decide.DefaultProposalSeconds))}
	body.Objects("rules", 0, maxPolicyRules, func(_ int, rule *input.Form) {
		p.Rules = append(p.Rules, decide.PolicyRule{Action: rule.String("action"), Threshold: rule.OptionalDecimal("threshold").Pointer()})
	})
	return p
}

// setPolicy replaces the policy of a journal.
func (h *Handler) setPolicy(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &decide.SetPolicy{Policy: readPolicy(body)}
	if err := body.Done(); err != nil {
		return err
	}
	to, actions, err := h.governedJournal(c, payload)
	if err != nil {
		return err
	}
	e, err := rest.Execute[*decide.PolicySet](c, to, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewPolicy(to.Name, e.Policy, actions))
}

// governedJournal returns the journal of the route as the target of a command, and the actions that a policy may name there.
func (h *Handler) governedJournal(c echo.Context, payload decide.Payload) (to operation.Journal, actions []decide.Action, err error) {
	if to, _, err = h.journalOf(c, rest.Param(c, "journal"), payload); err != nil {
		return to, nil, err
	}
	return to, actions, operation.View(rest.RequestOf(c), to.Name, h.cfg.Folds[to.Name], func(s decide.State, _ int64) error {
		g, ok := s.(governing)
		if !ok {
			return unknownJournal(to.Name)
		}
		actions = decide.PolicyActions(g.Governed())
		return nil
	})
}

// listProposals lists the proposals that the state holds: all open ones and the latest of the others, newest first.
func (h *Handler) listProposals(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	status := query.OptionalEnum("status", "open", "confirmed", "rejected", "withdrawn", "voided", "expired")
	if err := query.Done(); err != nil {
		return err
	}
	all := []wire.Proposal{}
	err := h.viewGoverning(c, func(journal string, s governing) error {
		for _, p := range slices.Backward(s.Proposals()) {
			if shown := wire.NewProposal(journal, &p, h.now()); !status.Set || string(shown.Status) == status.Value {
				all = append(all, shown)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.Slice(page, all))
}

// now returns the time at which proposals are shown as expired. The owner decides by its own.
func (h *Handler) now() scalar.Time { return scalar.TimeOf(h.cfg.Now()) }

func (h *Handler) getProposal(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	id, err := proposalID(c)
	if err != nil {
		return err
	}
	return h.showProposal(c, id)
}

// showProposal responds with a proposal as the fold has it.
func (h *Handler) showProposal(c echo.Context, id scalar.ID) error {
	var out *wire.Proposal
	err := h.viewGoverning(c, func(journal string, s governing) error {
		for _, p := range s.Proposals() {
			if p.ID == id {
				shown := wire.NewProposal(journal, &p, h.now())
				out = &shown
				return nil
			}
		}
		return unknownProposal()
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// proposalID reads the id from the route. An invalid UUID names no proposal.
func proposalID(c echo.Context) (scalar.ID, error) {
	id, err := scalar.ParseID(rest.Param(c, "id"))
	if err != nil {
		return id, unknownProposal()
	}
	return id, nil
}

func unknownProposal() error {
	return problem.NotFound("UNKNOWN_PROPOSAL", "There is no such proposal.")
}

// confirmProposal has the action of a proposal take effect. Before rules are activated, every node must again confirm that
// it supports them.
func (h *Handler) confirmProposal(c echo.Context) error {
	return h.end(c, func(id scalar.ID) decide.Payload { return &decide.ConfirmProposal{ID: id} }, h.rulesKnown)
}

// endProposal returns the handler of a request that ends a proposal without its action.
func (h *Handler) endProposal(payload func(scalar.ID) decide.Payload) echo.HandlerFunc {
	return func(c echo.Context) error {
		return h.end(c, payload, func(echo.Context, scalar.ID) error { return nil })
	}
}

// end submits a command about a proposal, after a check that a repeated request does not make, and responds with the
// proposal. A confirmation that voided it is a conflict.
func (h *Handler) end(c echo.Context, payload func(scalar.ID) decide.Payload, check func(echo.Context, scalar.ID) error) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	id, err := proposalID(c)
	if err != nil {
		return err
	}
	p := payload(id)
	to, repeated, err := h.journalOf(c, rest.Param(c, "journal"), p)
	if err != nil {
		return err
	}
	if !repeated {
		if err := check(c, id); err != nil {
			return err
		}
	}
	x, err := to.Execute(rest.RequestOf(c), p)
	if err != nil {
		return err
	}
	if voided, ok := operation.Find[*decide.ProposalVoided](x.Entry.Record); ok {
		return problem.Conflict(decide.CodeEvidenceChanged, fmt.Sprintf("Record %d changed what the proposal is about. The proposal is void.", voided.Changed))
	}
	return h.showProposal(c, id)
}

// rulesKnown returns an error if a proposal activates rules that some node does not support.
func (h *Handler) rulesKnown(c echo.Context, id scalar.ID) error {
	var rules decide.ActivateRules
	journal := rest.Param(c, "journal")
	err := h.viewGoverning(c, func(_ string, s governing) error {
		for _, p := range s.Proposals() {
			if p.ID == id && p.Command == rules.CommandType() {
				return json.Unmarshal([]byte(p.Content), rules.Content())
			}
		}
		return nil
	})
	if err != nil || rules.Rules == 0 {
		return err
	}
	return h.knownToAll(c, journal, rules.Rules)
}
