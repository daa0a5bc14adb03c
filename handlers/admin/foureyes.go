package admin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// maxPolicyRules is a number of rules of a policy that no journal reaches.
const maxPolicyRules = 100

// governing is the State of a journal that may have a policy.
type governing interface {
	decide.State
	decide.Facts
	Governed() decide.Governed
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
		post(proposal+"/reject", h.endProposal(func(id scalar.ID) (decide.Payload, *string) {
			p := &decide.RejectProposal{ID: id}
			return p, &p.Reason
		})),
		post(proposal+"/withdraw", h.endProposal(func(id scalar.ID) (decide.Payload, *string) {
			p := &decide.WithdrawProposal{ID: id}
			return p, &p.Reason
		})),
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
		out = wire.NewPolicy(journal, s.Policy(), s.Governed().Actions())
		return nil
	})
	if err != nil {
		return err
	}
	if len(out.Rules) > 0 && !h.usersProtected() {
		out.Note = "One operator can register a user, or set the password of any operator, and confirm as that person: " +
			"the policy of the journal identity does not have both user.register and user.change."
	}
	return c.JSON(http.StatusOK, out)
}

// usersProtected reports whether the policy of the identity journal demands two persons for changes of users.
func (h *Handler) usersProtected() (protected bool) {
	h.cfg.Identity.View(func(s decide.State, _ record.Position) { protected = s.(*identity.State).ProtectsUsers() })
	return protected
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
	var actions []decide.Action
	to, _, err := h.governedJournal(c, payload, func(_ string, s governing) error {
		actions = s.Governed().Actions()
		return nil
	})
	if err != nil {
		return err
	}
	e, err := rest.Execute[*decide.PolicySet](c, to, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewPolicy(to.Name, e.Policy, actions))
}

// governedJournal returns the journal of the route as the target of a command, and whether it remembers the request's key. It
// calls look with the journal's state.
func (h *Handler) governedJournal(c echo.Context, payload decide.Payload, look func(journal string, s governing) error) (to operation.Journal, repeated bool, err error) {
	if err := h.viewGoverning(c, look); err != nil {
		return to, false, err
	}
	return h.journalOf(c, rest.Param(c, "journal"), payload)
}

// listProposals lists the proposals that the state holds: all open ones and the latest of the others, newest first.
func (h *Handler) listProposals(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	status := query.OptionalEnum("status", "open", "confirmed", "rejected", "withdrawn", "voided", "expired")
	if err := query.Done(); err != nil {
		return err
	}
	var all []decide.Proposal
	err := h.viewGoverning(c, func(_ string, s governing) error {
		all = s.Proposals()
		return nil
	})
	if err != nil {
		return err
	}
	journal := rest.Param(c, "journal")
	now := h.clocks[journal].Now()
	all = slices.DeleteFunc(all, func(p decide.Proposal) bool { return status.Set && string(p.StatusAt(now)) != status.Value })
	slices.Reverse(all)
	items, total := []wire.Proposal{}, len(all)
	for _, p := range all[min(page.Offset(), total):min(page.Offset()+page.Size, total)] {
		items = append(items, wire.NewProposal(journal, &p, now))
	}
	return c.JSON(http.StatusOK, rest.NewItems(page, items, total))
}

// getProposal responds with a proposal and the texts in its command, so that the second person sees the whole request.
func (h *Handler) getProposal(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	id, err := proposalID(c)
	if err != nil {
		return err
	}
	p, err := h.findProposal(c, id)
	if err != nil {
		return err
	}
	journal := rest.Param(c, "journal")
	out := wire.NewProposal(journal, &p, h.clocks[journal].Now())
	if journal == onboardingJournal {
		texts, err := h.textsOf(c, &p)
		if err != nil {
			return err
		}
		out.Reveal(texts)
	}
	if err := h.openReason(c, &p, &out); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// findProposal returns a proposal as the fold has it.
func (h *Handler) findProposal(c echo.Context, id scalar.ID) (found decide.Proposal, err error) {
	return found, h.viewGoverning(c, func(_ string, s governing) error {
		all := s.Proposals()
		at := slices.IndexFunc(all, func(p decide.Proposal) bool { return p.ID == id })
		if at < 0 {
			return unknownProposal()
		}
		found = all[at]
		return nil
	})
}

// textsOf decrypts the texts of a proposed command of the onboarding journal, by their members in its content. There are none
// if the owner's key is destroyed.
func (h *Handler) textsOf(c echo.Context, p *decide.Proposal) (map[string]string, error) {
	payload, err := p.Payload(onboarding.Payloads())
	if err != nil {
		return nil, err
	}
	switch p := payload.(type) {
	case *onboarding.EraseOwner:
		return h.erasureTexts(p.Ref, p.Reason)
	case *onboarding.ReleaseOwner:
		return h.erasureTexts(p.Ref, p.Reason)
	case *onboarding.ActOnTrigger:
		return h.actionTexts(c, p)
	}
	return nil, nil
}

// sealReason returns the reason for the end of a proposal as the log has it. In the onboarding journal it is encrypted, with the
// key of the owner that the proposal is about, or else with the venue's.
func (h *Handler) sealReason(c echo.Context, id scalar.ID, reason string) (string, error) {
	if reason == "" || rest.Param(c, "journal") != onboardingJournal {
		return reason, nil
	}
	p, err := h.findProposal(c, id)
	if err != nil {
		return "", err
	}
	about, err := h.ownerOfProposal(c, &p)
	if err != nil {
		return "", err
	}
	var sealed []byte
	if about == (owner.Ref{}) {
		sealed, err = h.cfg.Box.Seal([]byte(reason), seal.ProposalReason(about, id))
	} else {
		sealed, err = h.cfg.Owners.Seal(c.Request().Context(), []byte(reason), seal.ProposalReason(about, id))
	}
	return base64.StdEncoding.EncodeToString(sealed), h.keyError(c, about, err)
}

// openReason adds the encrypted reason for the end of a proposal of the onboarding journal to its response, unless the owner's key
// is destroyed.
func (h *Handler) openReason(c echo.Context, p *decide.Proposal, out *wire.Proposal) error {
	if p.Reason == "" || out.Journal != onboardingJournal {
		return nil
	}
	sealed, err := base64.StdEncoding.DecodeString(p.Reason)
	if err != nil {
		return err
	}
	about, err := h.ownerOfProposal(c, p)
	if err != nil {
		return err
	}
	var text []byte
	if about == (owner.Ref{}) {
		text, err = h.cfg.Box.Open(sealed, seal.ProposalReason(about, p.ID))
	} else {
		text, err = h.cfg.Owners.Open(c.Request().Context(), sealed, seal.ProposalReason(about, p.ID))
	}
	if err == nil {
		reason := string(text)
		out.EndedReason = &reason
	}
	if errors.Is(err, seal.ErrDestroyed) {
		return nil
	}
	return h.keyError(c, about, err)
}

// ownerOfProposal returns the owner that a proposal of the onboarding journal is about, or the zero Ref.
func (h *Handler) ownerOfProposal(c echo.Context, p *decide.Proposal) (owner.Ref, error) {
	payload, err := p.Payload(onboarding.Payloads())
	if err != nil {
		return owner.Ref{}, err
	}
	switch p := payload.(type) {
	case *onboarding.EraseOwner:
		return p.Ref, nil
	case *onboarding.ReleaseOwner:
		return p.Ref, nil
	case *onboarding.ActOnTrigger:
		return h.ownerOf(c, p.ID)
	}
	return owner.Ref{}, nil
}

// erasureTexts decrypts the reason of a command about an owner, which the venue's key encrypts.
func (h *Handler) erasureTexts(ref owner.Ref, reason onboarding.Sealed) (map[string]string, error) {
	text, err := h.cfg.Box.Open(reason, seal.ErasureReason(ref))
	return map[string]string{"reason": string(text)}, err
}

// actionTexts decrypts the texts of an action on a trigger, which the owner's key encrypts.
func (h *Handler) actionTexts(c echo.Context, p *onboarding.ActOnTrigger) (map[string]string, error) {
	about, err := h.ownerOf(c, p.ID)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, s := range []struct {
		member string
		sealed onboarding.Sealed
		at     seal.AssociatedData
	}{
		{"reason", p.Reason, seal.Reason(about, p.ID)},
		{"internal_reason", p.InternalReason, seal.InternalReason(about, p.ID)},
		{"external_reference", p.ExternalReference, seal.ExternalReference(about, p.ID)},
	} {
		if len(s.sealed) == 0 {
			continue
		}
		text, err := h.cfg.Owners.Open(c.Request().Context(), s.sealed, s.at)
		switch {
		case errors.Is(err, seal.ErrDestroyed):
			return nil, nil
		case err != nil:
			return nil, h.keyError(c, about, err)
		}
		texts[s.member] = string(text)
	}
	return texts, nil
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

// confirmProposal has the action of a proposal take effect. It does what the route of the action does besides its command:
// before rules are activated, every node must again confirm that it supports them, and the release of a hold also removes
// the hold from the key store.
func (h *Handler) confirmProposal(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	err := h.end(c, func(id scalar.ID) decide.Payload { return &decide.ConfirmProposal{ID: id} }, h.mayConfirm)
	var refused *submit.RefusedError
	if !errors.As(err, &refused) || refused.Refusal.Code != decide.CodeProposalNotOpen {
		return err
	}
	// An earlier answer may have been lost, or an error of the key store.
	if again, failed := h.releaseAgain(c, refused.AsOf.Sequence); again || failed != nil {
		return failed
	}
	return err
}

// endProposal returns the handler of a request that ends a proposal without its action. payload returns the command and its reason.
func (h *Handler) endProposal(payload func(scalar.ID) (p decide.Payload, reason *string)) echo.HandlerFunc {
	return func(c echo.Context) error {
		body := rest.OptionalBody(c)
		text := body.OptionalString("reason", input.Visible, input.MaxLength(maxReason)).Value
		if err := body.Done(); err != nil {
			return err
		}
		var forms []*input.Form
		if text != "" { // a request without a reason keeps the fingerprint that it had before there were reasons
			forms = append(forms, body)
		}
		var reason *string
		named := func(id scalar.ID) (p decide.Payload) {
			p, reason = payload(id)
			return p
		}
		return h.end(c, named, func(c echo.Context, id scalar.ID) (err error) {
			*reason, err = h.sealReason(c, id, text)
			return err
		}, forms...)
	}
}

// end submits a command about a proposal, after a check that a repeated request does not make, and responds with the
// proposal. A confirmation that voided it is a conflict.
func (h *Handler) end(c echo.Context, payload func(scalar.ID) decide.Payload, check func(echo.Context, scalar.ID) error, forms ...*input.Form) error {
	id, err := proposalID(c)
	if err != nil {
		return err
	}
	p := payload(id)
	to, repeated, err := h.governedJournal(c, p, func(string, governing) error { return nil })
	if err != nil {
		return err
	}
	if !repeated {
		if err := check(c, id); err != nil {
			return err
		}
	}
	x, err := to.Execute(rest.RequestOf(c), p, forms...)
	if err != nil {
		return err
	}
	if voided, ok := operation.Find[*decide.ProposalVoided](x.Entry.Record); ok {
		return problem.Conflict(decide.CodeEvidenceChanged, fmt.Sprintf("Record %d changed what the proposal is about. The proposal is void.", voided.Changed))
	}
	if e, ok := operation.Find[*onboarding.OwnerReleased](x.Entry.Record); ok {
		if _, err := h.releaseKey(context.WithoutCancel(c.Request().Context()), e.Ref, x.Position.Sequence); err != nil {
			return h.keyError(c, e.Ref, err)
		}
	}
	return h.showProposal(c, id)
}

// showProposal responds with a proposal as the fold has it, without its command's encrypted texts.
func (h *Handler) showProposal(c echo.Context, id scalar.ID) error {
	p, err := h.findProposal(c, id)
	if err != nil {
		return err
	}
	journal := rest.Param(c, "journal")
	out := wire.NewProposal(journal, &p, h.clocks[journal].Now())
	if err := h.openReason(c, &p, &out); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// mayConfirm returns an error if a proposal activates rules that some node does not support, names a checkpoint key that the key
// store lacks, or releases a hold while this venue may not change the key store. It leaves the refusal of an unknown proposal to
// the journal's owner.
func (h *Handler) mayConfirm(c echo.Context, id scalar.ID) error {
	p, err := h.findProposal(c, id)
	if err != nil {
		return nil
	}
	switch p.Command {
	case decide.CommandActivateRules:
		var rules decide.ActivateRules
		if err := json.Unmarshal([]byte(p.Content), rules.Content()); err != nil {
			return err
		}
		return h.knownToAll(c, rest.Param(c, "journal"), rules.Rules)
	case decide.CommandRotateCheckpointKey:
		return h.hasCheckpointKey(c, &p)
	case onboarding.CommandReleaseOwner:
		ctx := c.Request().Context()
		if err := h.cfg.Owners.MayChange(ctx); err != nil {
			return h.keyError(c, owner.Ref{}, err)
		}
	}
	return nil
}

// hasCheckpointKey returns an error if an open proposal names another key than the one that the key store has as the next.
func (h *Handler) hasCheckpointKey(c echo.Context, p *decide.Proposal) error {
	journal := rest.Param(c, "journal")
	if p.StatusAt(h.clocks[journal].Now()) != decide.StatusOpen || p.Changed != 0 {
		return nil // the journal's owner refuses the confirmation
	}
	var rotation decide.RotateCheckpointKey
	if err := json.Unmarshal([]byte(p.Content), rotation.Content()); err != nil {
		return err
	}
	next, err := h.nextCheckpointKey(c, journal)
	if err != nil {
		return err
	}
	if next.Key != rotation.Key {
		return problem.Conflict("ANOTHER_CHECKPOINT_KEY", "The key store does not have the proposed key: propose the rotation again.")
	}
	return nil
}

// releaseAgain responds to a repeated confirmation of the release of a hold, if the key store still had the hold.
func (h *Handler) releaseAgain(c echo.Context, sequence int64) (again bool, err error) {
	id, err := proposalID(c)
	if err != nil {
		return false, err
	}
	p, err := h.findProposal(c, id)
	if err != nil || p.Command != onboarding.CommandReleaseOwner || p.Status != decide.StatusConfirmed {
		return false, err
	}
	payload, err := p.Payload(onboarding.Payloads())
	if err != nil {
		return false, err
	}
	ref := payload.(*onboarding.ReleaseOwner).Ref
	was, err := h.releaseKey(context.WithoutCancel(c.Request().Context()), ref, sequence)
	if err != nil || !was {
		return false, h.keyError(c, ref, err)
	}
	return true, h.showProposal(c, id)
}
