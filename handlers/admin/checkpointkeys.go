package admin

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// keyRotated is the response to the rotation of a checkpoint key.
type keyRotated struct {
	Journal    string      `json:"journal"`
	Generation int         `json:"generation"`
	Previous   string      `json:"previous"`
	Key        string      `json:"key"`
	Until      scalar.Time `json:"until"`
}

// rotateCheckpointKey records the next key of a journal's transparency log. The key is durable in the key store before the record
// names it. If two requests race, both use the same key and the second is refused.
func (h *Handler) rotateCheckpointKey(c echo.Context) error {
	if err := rest.BodyAbsent(c); err != nil {
		return err
	}
	payload := new(decide.RotateCheckpointKey)
	to, repeated, err := h.journalOf(c, rest.Param(c, "journal"), payload)
	if err != nil {
		return err
	}
	if !repeated {
		if payload, err = h.nextCheckpointKey(c, to.Name); err != nil {
			return err
		}
	}
	e, err := rest.Execute[*decide.CheckpointKeyRotated](c, to, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, keyRotated{to.Name, e.Generation, e.Previous, e.Key, e.Until})
}

// nextCheckpointKey makes the next key of a journal's transparency log in the key store, or returns the one that no record names.
func (h *Handler) nextCheckpointKey(c echo.Context, journal string) (*decide.RotateCheckpointKey, error) {
	next, err := h.cfg.NextCheckpointKey(c.Request().Context(), journal)
	if err != nil {
		return nil, problem.SourceFailed(fmt.Errorf("the keys that sign checkpoints: %w", err))
	}
	return next, nil
}
