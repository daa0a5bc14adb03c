package admin

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// listAPIKeys lists a user's keys, newest first. Operators use it to find the key to limit.
func (h *Handler) listAPIKeys(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	username, known := rest.Param(c, "username"), false
	var all []wire.APIKey
	err := h.viewIdentity(c, func(s *identity.State) {
		_, known = s.User(username)
		for _, k := range slices.Backward(s.APIKeys(username)) {
			all = append(all, wire.NewAPIKey(k))
		}
	})
	if err != nil {
		return err
	}
	if !known {
		return problem.NotFound("USER_NOT_FOUND", "There is no such user.")
	}
	return c.JSON(http.StatusOK, rest.Slice(page, all))
}

// limitedAPIKey is the response to a change of a key's rate limit.
type limitedAPIKey struct {
	ID        scalar.ID           `json:"id"`
	Username  string              `json:"username"`
	RateLimit *identity.RateLimit `json:"rate_limit"`
}

// limitAPIKey sets a key's rate limit, which replaces the limit of the key's user, or removes it.
func (h *Handler) limitAPIKey(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &identity.LimitAPIKey{Username: rest.Param(c, "username"), RateLimit: rateLimit(body)}
	if !body.Has("rate_limit") && !body.Null("rate_limit") {
		body.Fault("rate_limit", validation.Required, "the limit is required; null takes it away")
	}
	if err := body.Done(); err != nil {
		return err
	}
	var err error
	if payload.ID, err = scalar.ParseID(rest.Param(c, "id")); err != nil { // an invalid ID names no key
		return problem.Refused(decide.Refuse(decide.NotFound, "API_KEY_NOT_FOUND", "the user has no such API key"))
	}
	e, err := rest.Execute[*identity.APIKeyLimited](c, h.identity, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, limitedAPIKey(*e))
}
