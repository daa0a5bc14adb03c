package apikeys

import (
	"bytes"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const identityJournal = "identity"

// Config is what the routes are made of.
type Config struct {
	Auth     *web.Auth
	Journals submit.Submitter
	Identity web.Follower // of the identity journal, under identity.Rules
	Venue    web.Follower // of the trading journal, under trading.Rules: it knows the customers
}

// Handler serves the routes.
type Handler struct {
	cfg      Config
	identity web.Journal
}

// New makes the handler.
func New(c Config) *Handler {
	return &Handler{c, web.Journal{To: c.Journals, Name: identityJournal, Judges: c.Identity}}
}

// Routes lists the routes. They are for whoever has a good token, whatever its scopes.
func (h *Handler) Routes() []web.Route {
	return []web.Route{
		web.Get("/v1/api-keys", h.list, web.AnyScope...),
		web.Post("/v1/api-keys", h.create, web.AnyScope...),
		web.Delete("/v1/api-keys/:id", h.revoke, web.AnyScope...),
	}
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) { h.cfg.Auth.Register(e, h.Routes()) }

// createdKey is a new key, and its secret unless that was shown before.
type createdKey struct {
	wire.APIKey
	Key *string `json:"key"`
}

// wanted is what a request for a key says, for its fingerprint. The user belongs to it: two users of a broker may use the
// same Idempotency-Key, and one must not be answered with the key of the other. The log remembers fingerprints, so the
// members never change.
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
	body := web.BodyOnly(c)
	w := wanted{Username: p.Username, Name: body.String("name", nameRule), Scopes: scopes(body),
		CustomerCode: body.OptionalString("customer_code", web.CustomerCode).Value, IPAllowList: networks(body),
		ExpiresAt: body.OptionalTime("expires_at").Value}
	if err := body.Done(); err != nil {
		return err
	}
	if err := h.customerOf(p, w.CustomerCode); err != nil {
		return err
	}
	secret := web.NewSecret()
	hash := web.HashOf(secret)
	e, err := web.Execute[*identity.APIKeyCreated](c, h.identity, &identity.CreateAPIKey{
		Name: w.Name, Prefix: secret[:prefixLength], Hash: hash[:], Scopes: w.Scopes, CustomerCode: w.CustomerCode,
		IPAllowList: w.IPAllowList, ExpiresAt: w.ExpiresAt}, body.Means(w))
	if err != nil {
		return err
	}
	out := createdKey{APIKey: wire.NewAPIKey(&e.APIKey)}
	// With a repeated Idempotency-Key the record holds the hash of a secret that was made, and perhaps shown, before, and
	// that nobody has kept: the one of now opens nothing.
	if bytes.Equal(e.Hash, hash[:]) {
		out.Key = &secret
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, out)
}

func (h *Handler) list(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	out := []wire.APIKey{}
	p := web.PrincipalOf(c)
	err := web.View(c, identityJournal, h.cfg.Identity, func(s *identity.State, _ int64) error {
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

// mayList reports whether a principal sees a key of its user. Whoever was given a key for one account learns nothing of
// those for others.
func mayList(p *web.Principal, k *identity.APIKey) bool {
	return p.APIKey.IsZero() || p.Customer == "" || p.Customer == k.CustomerCode
}

// revokedKey is the answer to revoking a key.
type revokedKey struct {
	ID      scalar.ID   `json:"id"`
	Revoked scalar.Time `json:"revoked"`
}

func (h *Handler) revoke(c echo.Context) error {
	if _, err := person(c); err != nil {
		return err
	}
	if err := web.NoBody(c); err != nil {
		return err
	}
	id, err := scalar.ParseID(web.Param(c, "id"))
	if err != nil { // it names no key
		return web.Refused(decide.Refuse(decide.NotFound, "API_KEY_NOT_FOUND", "the user has no such API key"))
	}
	e, err := web.Execute[*identity.APIKeyRevoked](c, h.identity, &identity.RevokeAPIKey{ID: id})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, revokedKey{ID: e.ID, Revoked: e.Revoked})
}

// person returns the principal of a request that came with a token of a login. A key makes and revokes no keys: one that
// was stolen could go on for ever.
func person(c echo.Context) (*web.Principal, error) {
	p := web.PrincipalOf(c)
	if !p.APIKey.IsZero() {
		return nil, web.Forbidden("API keys cannot make or revoke API keys.")
	}
	return p, nil
}

// customerOf wants a key's account to be one of the user's broker. The identity journal knows no accounts, so this is
// looked up in the venue.
func (h *Handler) customerOf(p *web.Principal, customer string) error {
	if customer == "" {
		return nil
	}
	// Accounts neither vanish nor change their broker, so what is seen here holds when the command is decided.
	known := false
	h.cfg.Venue.View(func(s decide.State, _ record.Position) {
		broker, there := s.(*trading.State).CustomerBroker(customer)
		known = there && broker == p.Broker && (p.Customer == "" || p.Customer == customer)
	})
	if !known {
		return web.Refused(&decide.Refusal{Kind: decide.Unacceptable, Code: "UNKNOWN_CUSTOMER", Field: "customer_code",
			Message: "the user has no such customer"})
	}
	return nil
}
