package onboarding

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// seal encrypts a value's JSON form with the owner's key, with its associated data.
func (h *Handler) seal(ctx context.Context, of owner.Ref, at seal.AssociatedData, value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	c, err := h.cfg.Owners.Seal(ctx, plain, at)
	return c, sealing(of, err)
}

// open decrypts a result of seal into a value.
func (h *Handler) open(ctx context.Context, of owner.Ref, at seal.AssociatedData, c []byte, value any) error {
	plain, err := h.cfg.Owners.Open(ctx, c, at)
	if err != nil {
		return sealing(of, err)
	}
	return json.Unmarshal(plain, value)
}

// fetchKeys fetches the keys of owners into the cache, so that decrypting does not read them one by one from the
// store.
func (h *Handler) fetchKeys(ctx context.Context, of []owner.Ref) error {
	names := make([]string, len(of))
	for i, ref := range of {
		names[i] = ref.String()
	}
	return sealing(owner.Ref{}, h.cfg.Owners.Fetch(ctx, names))
}

// sealing converts an error of encrypting or decrypting an owner's data. A destroyed key is reported as an unknown
// owner.
func sealing(of owner.Ref, err error) error {
	if errors.Is(err, seal.ErrDestroyed) {
		return notFound(of.Type)
	}
	return problem.KeysFailed(err)
}

// personal makes the form's fingerprint a hash with the tenant's key, because the log stores it. A reader of the log
// then cannot test guesses.
func (h *Handler) personal(c echo.Context, body *input.Form) *input.Form {
	return body.Seal(func(content []byte) []byte { return h.personalMAC(c, content) })
}

// personalMAC returns a hash of a request's content with the tenant's key.
func (h *Handler) personalMAC(c echo.Context, content []byte) []byte {
	return seal.MAC(h.cfg.Box.Derive("fingerprint "+rest.PrincipalOf(c).Broker), content)
}
