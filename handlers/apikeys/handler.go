package apikeys

import (
	"bytes"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const identityJournal = "identity"

// Config holds the dependencies of the routes.
type Config struct {
	Auth     *rest.Auth
	Journals submit.Submitter
	Identity record.Follower // of the identity journal, under identity.Rules
	Venue    record.Follower // of the trading journal, under trading.Rules, for looking up customers
}

// Handler serves the routes.
type Handler struct {
	cfg      Config
	identity operation.Journal
}

// New makes the handler.
func New(c Config) *Handler {
	return &Handler{c, operation.Journal{To: c.Journals, Name: identityJournal, AuthFollower: c.Identity}}
}

// Routes lists the routes. They accept every valid token and require no particular scope.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/api-keys", h.list, access.AnyScope...),
		rest.Post("/v1/api-keys", h.create, access.AnyScope...),
		rest.Delete("/v1/api-keys/:id", h.revoke, access.AnyScope...),
	}
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) { h.cfg.Auth.Register(e, h.Routes()) }

// createdKey is a new key. Key is null if the secret was returned by an earlier request.
type createdKey struct {
	wire.APIKey
	Key *string `json:"key"`
}

// wanted holds the content of a creation request for its fingerprint. It includes the user: two users of a broker may
// use the same Idempotency-Key, and neither must receive the other's key. The log stores fingerprints, so the members
// must never change.
type wanted struct {
	Username     string      `json:"username"`
	Name         string      `json:"name"`
	Scopes       []string    `json:"scopes"`
	CustomerCode string      `json:"customer_code"`
	IPAllowList  []string    `json:"ip_allow_list"`
	ExpiresAt    scalar.Time `json:"expires_at"`
}

func (h *Handler) create(c echo.Context) error {
	p, err := person(c)
	if err != nil {
		return err
	}
	body := rest.BodyOnly(c)
	w := wanted{Username: p.Username, Name: body.String("name", nameRule), Scopes: scopes(body),
		CustomerCode: body.OptionalString("customer_code", input.CustomerCode).Value, IPAllowList: networks(body),
		ExpiresAt: body.OptionalTime("expires_at").Value}
	if err := body.Done(); err != nil {
		return err
	}
	if err := h.customerOf(p, w.CustomerCode); err != nil {
		return err
	}
	secret := access.NewSecret()
	hash := access.HashOf(secret)
	e, err := rest.Execute[*identity.APIKeyCreated](c, h.identity, &identity.CreateAPIKey{
		Name: w.Name, Prefix: secret[:prefixLength], Hash: hash[:], Scopes: w.Scopes, CustomerCode: w.CustomerCode,
		IPAllowList: w.IPAllowList, ExpiresAt: w.ExpiresAt}, body.Means(w))
	if err != nil {
		return err
	}
	out := createdKey{APIKey: wire.NewAPIKey(&e.APIKey)}
	// If the Idempotency-Key was used before, the record holds the hash of the earlier secret, which may have been
	// shown and was not stored. The new secret is not valid.
	if bytes.Equal(e.Hash, hash[:]) {
		out.Key = &secret
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, out)
}

func (h *Handler) list(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	out := []wire.APIKey{}
	p := rest.PrincipalOf(c)
	err := rest.View(c, identityJournal, h.cfg.Identity, func(s *identity.State, _ int64) error {
		for _, k := range s.APIKeys(p.Username) {
			if mayList(p, k) {
				out = append(out, wire.NewAPIKey(k))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// mayList reports whether a principal may see a key of the same user. A key that is limited to one account must not
// see the keys of other accounts.
func mayList(p *access.Principal, k *identity.APIKey) bool {
	return p.APIKey.IsZero() || p.Customer == "" || p.Customer == k.CustomerCode
}

// revokedKey is the response to a revocation.
type revokedKey struct {
	ID      scalar.ID   `json:"id"`
	Revoked scalar.Time `json:"revoked"`
}

func (h *Handler) revoke(c echo.Context) error {
	if _, err := person(c); err != nil {
		return err
	}
	if err := rest.NoBody(c); err != nil {
		return err
	}
	id, err := scalar.ParseID(rest.Param(c, "id"))
	if err != nil { // an invalid ID names no key
		return problem.Refused(decide.Refuse(decide.NotFound, "API_KEY_NOT_FOUND", "the user has no such API key"))
	}
	e, err := rest.Execute[*identity.APIKeyRevoked](c, h.identity, &identity.RevokeAPIKey{ID: id})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, revokedKey{ID: e.ID, Revoked: e.Revoked})
}

// person returns the principal of a request with a login token. API keys cannot create or revoke keys, because a
// stolen key could then renew itself forever.
func person(c echo.Context) (*access.Principal, error) {
	p := rest.PrincipalOf(c)
	if !p.APIKey.IsZero() {
		return nil, problem.Forbidden("API keys cannot make or revoke API keys.")
	}
	return p, nil
}

// customerOf checks that the customer belongs to the user's broker. The identity journal contains no customers, so
// the check uses the trading journal.
func (h *Handler) customerOf(p *access.Principal, customer string) error {
	if customer == "" {
		return nil
	}
	// A customer is never removed and never changes its broker, so the result still holds when the command is
	// decided.
	known := false
	h.cfg.Venue.View(func(s decide.State, _ record.Position) {
		broker, there := s.(*trading.State).CustomerBroker(customer)
		known = there && broker == p.Broker && (p.Customer == "" || p.Customer == customer)
	})
	if !known {
		return problem.Refused(&decide.Refusal{Kind: decide.Unacceptable, Code: "UNKNOWN_CUSTOMER", Field: "customer_code",
			Message: "the user has no such customer"})
	}
	return nil
}
