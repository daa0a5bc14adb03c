package onboarding

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// seal returns a value as the log may hold it: its JSON form, sealed for its place with the key of an owner.
func (h *Handler) seal(ctx context.Context, of owner.Ref, at seal.Place, value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	c, err := h.cfg.Owners.Seal(ctx, plain, at)
	return c, sealing(of, err)
}

// open reads what seal returned into a value.
func (h *Handler) open(ctx context.Context, of owner.Ref, at seal.Place, c []byte, value any) error {
	plain, err := h.cfg.Owners.Open(ctx, c, at)
	if err != nil {
		return sealing(of, err)
	}
	return json.Unmarshal(plain, value)
}

// fetchKeys has the keys of owners at hand, so that opening something of each does not ask the store for one after the other.
func (h *Handler) fetchKeys(ctx context.Context, of []owner.Ref) error {
	names := make([]string, len(of))
	for i, ref := range of {
		names[i] = ref.String()
	}
	return sealing(owner.Ref{}, h.cfg.Owners.Fetch(ctx, names))
}

// sealing is the error of sealing or opening something of an owner. Once the key is destroyed, the owner is as if erased.
func sealing(of owner.Ref, err error) error {
	switch {
	case errors.Is(err, seal.ErrDestroyed):
		return notFound(of.Type)
	case errors.Is(err, seal.ErrFenced):
		return web.Fenced(err)
	case errors.Is(err, seal.ErrAway):
		return web.Unavailable("KEYS_UNAVAILABLE", "The keys that data is sealed with can't be read now.", time.Second).Because(err)
	}
	return err
}

// personal has a form's fingerprint, which the log keeps, made with a key of the tenant's: nobody who reads the log can try
// values until one fits.
func (h *Handler) personal(c echo.Context, body *web.Form) *web.Form {
	return body.Seal(func(said []byte) []byte { return h.personalMAC(c, said) })
}

// personalMAC is a hash of what a request says, under that key.
func (h *Handler) personalMAC(c echo.Context, said []byte) []byte {
	return seal.MAC(h.cfg.Box.Derive("fingerprint "+web.PrincipalOf(c).Broker), said)
}
