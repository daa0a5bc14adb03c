package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
	people "github.com/perpetua-exchange/perpetua/projections/identity"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// These constants limit names and passwords. Names are in characters, passwords in bytes.
const (
	maxName     = 64
	minPassword = 8
	maxPassword = 256
)

var usernameRule = form.Characters{Limit: 64, Extra: "._@+-"}.Rule

// broker is a tenant as operators see it.
type broker struct {
	Broker  string      `json:"broker"`
	Name    string      `json:"name"`
	Created scalar.Time `json:"created"`
}

// brokerRoutes returns the routes of brokers.
func (h *Handler) brokerRoutes() []rest.Route {
	return []rest.Route{
		read("/brokers", h.listBrokers),
		post("/brokers", h.registerBroker),
	}
}

// userRoutes returns the routes of users and of their API keys.
func (h *Handler) userRoutes() []rest.Route {
	return []rest.Route{
		read("/users", h.listUsers),
		post("/users", h.registerUser),
		patch("/users/:username", h.changeUser),
		read("/users/:username/api-keys", h.listAPIKeys),
		patch("/users/:username/api-keys/:id", h.limitAPIKey),
	}
}

func (h *Handler) registerBroker(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &identity.RegisterBroker{Broker: body.String("broker", input.BrokerCode), Name: body.String("name", input.MaxLength(maxName))}
	e, err := rest.Execute[*identity.BrokerRegistered](c, h.identity, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, broker(e.Broker))
}

func (h *Handler) listBrokers(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	return answerNumbered(c, h.cfg.People, page, people.Brokers, func(b *people.Broker) broker { return broker(b.Broker) })
}

// user is a user as operators see it, without the password.
type user struct {
	Username     string              `json:"username"`
	Broker       string              `json:"broker"`
	CustomerCode *string             `json:"customer_code"`
	Scopes       []string            `json:"scopes"`
	IsActive     bool                `json:"is_active"`
	IsVerified   bool                `json:"is_verified"`
	RateLimit    *identity.RateLimit `json:"rate_limit"`
	Created      scalar.Time         `json:"created"`
}

func newUser(u *identity.User) user {
	out := user{Username: u.Username, Broker: u.Broker, Scopes: u.Scopes, IsActive: u.IsActive, IsVerified: u.IsVerified,
		RateLimit: u.RateLimit, Created: u.Created}
	if u.CustomerCode != "" {
		out.CustomerCode = &u.CustomerCode
	}
	return out
}

func (h *Handler) registerUser(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &identity.RegisterUser{
		Username:     body.String("username", usernameRule),
		Broker:       body.String("broker", input.BrokerCode),
		CustomerCode: body.OptionalString("customer_code", input.CustomerCode).Value,
		Scopes:       body.Distinct("scopes", input.OneOf(identity.Scopes()...)),
		IsActive:     body.OptionalBool("is_active").Or(true),
		IsVerified:   body.OptionalBool("is_verified").Or(true),
		RateLimit:    rateLimit(body),
	}
	password := body.String("password", passwordRule)
	if err := body.Done(); err != nil {
		return err
	}
	if err := h.accountOf(payload.Broker, payload.CustomerCode); err != nil {
		return err
	}
	var err error
	if payload.PasswordHash, err = h.sealed(payload.Username, password); err != nil {
		return err
	}
	e, err := rest.Execute[*identity.UserRegistered](c, h.identity, payload, body.Seal(h.cfg.MAC))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, newUser(&e.User))
}

func (h *Handler) changeUser(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &identity.ChangeUser{
		Username:       rest.Param(c, "username"),
		IsActive:       body.OptionalBool("is_active").Pointer(),
		IsVerified:     body.OptionalBool("is_verified").Pointer(),
		CustomerCode:   body.OptionalString("customer_code", input.CustomerCode).Pointer(),
		RateLimit:      rateLimit(body),
		ClearRateLimit: body.Null("rate_limit"),
		Scopes:         body.OptionalDistinct("scopes", input.OneOf(identity.Scopes()...)).Value,
	}
	if body.Null("customer_code") {
		payload.CustomerCode = new(string)
	}
	password := body.OptionalString("password", passwordRule)
	if !slices.ContainsFunc([]string{"is_active", "is_verified", "scopes", "password"}, body.Has) &&
		!slices.ContainsFunc([]string{"customer_code", "rate_limit"}, func(n string) bool { return body.Has(n) || body.Null(n) }) {
		body.Fault("", validation.Required, "at least one field is required")
	}
	if err := body.Done(); err != nil {
		return err
	}
	if payload.CustomerCode != nil && *payload.CustomerCode != "" {
		if err := h.accountOf(h.brokerOf(payload.Username), *payload.CustomerCode); err != nil {
			return err
		}
	}
	if password.Set {
		var err error
		if payload.PasswordHash, err = h.sealed(payload.Username, password.Value); err != nil {
			return err
		}
	}
	e, err := rest.Execute[*identity.UserChanged](c, h.identity, payload, body.Seal(h.cfg.MAC))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newUser(&e.User))
}

func (h *Handler) sealed(username, password string) (identity.Sealed, error) {
	h.hashing.Lock()
	defer h.hashing.Unlock()
	sealed, err := h.cfg.SealPassword(username, password)
	if err != nil {
		return nil, fmt.Errorf("the password of user %s: %w", username, err)
	}
	return sealed, nil
}

// accountOf checks that a user's customer belongs to the user's broker. The identity journal contains no customers,
// so the check uses the trading journal.
func (h *Handler) accountOf(broker, customer string) error {
	if customer == "" {
		return nil
	}
	// A customer is never removed and never changes its broker, so the result still holds when the command is
	// decided.
	known := false
	h.cfg.Venue.View(func(s decide.State, _ record.Position) {
		owner, ok := s.(*venue.State).CustomerBroker(customer)
		known = ok && owner == broker
	})
	if !known {
		return problem.Refused(&decide.Refusal{Kind: decide.Unacceptable, Code: "UNKNOWN_CUSTOMER", Field: "customer_code",
			Message: "the user's broker has no such customer"})
	}
	return nil
}

// brokerOf returns a user's broker, which never changes. It returns "" for an unknown user, which the command then
// refuses.
func (h *Handler) brokerOf(username string) (broker string) {
	h.cfg.Identity.View(func(s decide.State, _ record.Position) {
		if u, ok := s.(*identity.State).User(username); ok {
			broker = u.Broker
		}
	})
	return broker
}

func (h *Handler) listUsers(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	return answerNumbered(c, h.cfg.People, page, people.Users, func(u *people.User) user { return newUser(&u.User) })
}

// answerNumbered responds with a numbered page of rows.
func answerNumbered[Row, Shown any](c echo.Context, from rows.Source, page rest.Numbered,
	read func(ctx context.Context, db projections.DB, size, offset int) ([]Row, int, int64, error), show func(*Row) Shown) error {
	var shown []Shown
	var total int
	err := from.Read(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		var found []Row
		if found, total, asOf, err = read(ctx, db, page.Size, page.Offset()); err != nil {
			return asOf, err
		}
		shown = make([]Shown, len(found))
		for i := range found {
			shown[i] = show(&found[i])
		}
		return asOf, nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.NewItems(page, shown, total))
}

func passwordRule(s string) (code, message string) {
	if len(s) < minPassword || len(s) > maxPassword {
		return validation.InvalidValue, fmt.Sprintf("the password must be %d to %d bytes long", minPassword, maxPassword)
	}
	return "", ""
}

func rateLimit(f *input.Form) *identity.RateLimit {
	var limit identity.RateLimit
	given := f.OptionalObject("rate_limit", func(f *input.Form) {
		limit.PerSecond = f.Integer("per_second", 1, identity.MaxRate)
		limit.Burst = f.Integer("burst", 1, identity.MaxRate)
	})
	if !given {
		return nil
	}
	return &limit
}
