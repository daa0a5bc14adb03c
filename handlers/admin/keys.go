package admin

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// signingKey is a key that signs access tokens as operators see it, without the private part.
type signingKey struct {
	KID     string       `json:"kid"`
	Created scalar.Time  `json:"created"`
	Retired *scalar.Time `json:"retired"`
}

// keyRoutes returns the routes of signing keys.
func (h *Handler) keyRoutes() []rest.Route {
	return []rest.Route{
		read("/signing-keys", h.listSigningKeys),
		post("/signing-keys", h.addSigningKey),
		remove("/signing-keys/:kid", h.retireSigningKey),
	}
}

func newSigningKey(k *identity.SigningKey) signingKey {
	out := signingKey{KID: k.KID, Created: k.Created}
	if !k.Retired.IsZero() {
		out.Retired = &k.Retired
	}
	return out
}

func (h *Handler) listSigningKeys(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	var all []signingKey
	err := h.viewIdentity(c, func(s *identity.State) {
		for _, k := range slices.Backward(s.Keys()) {
			all = append(all, newSigningKey(k))
		}
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.Slice(page, all))
}

// addSigningKey generates a signing key. The key is published immediately and starts to sign when every cached key
// set must contain it. Older keys verify tokens until they are retired, so users stay logged in.
func (h *Handler) addSigningKey(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	payload, err := h.cfg.NewSigningKey()
	if err != nil {
		return fmt.Errorf("making a signing key: %w", err)
	}
	e, err := rest.Execute[*identity.SigningKeyAdded](c, h.identity, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, newSigningKey(&e.SigningKey))
}

// retireSigningKey retires a key. From then on the key and every token that it signed are refused.
func (h *Handler) retireSigningKey(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	kid := rest.Param(c, "kid")
	e, err := rest.Execute[*identity.SigningKeyRetired](c, h.identity, &identity.RetireSigningKey{KID: kid})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retiredKey{KID: e.KID, Retired: e.Retired})
}

// retiredKey is the response to the retirement of a key.
type retiredKey struct {
	KID     string      `json:"kid"`
	Retired scalar.Time `json:"retired"`
}
