package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// maxDisclosed is the greatest number of records that one request may name.
const maxDisclosed = 1000 * epoch.Length

// generations returns the secrets in the venue's key store.
func (h *Handler) generations() *seal.Generations {
	return seal.NewGenerations(h.cfg.Owners.Store(), h.cfg.Box)
}

// schedule returns the generations of a journal as this node's fold has them, and the sequence of the fold's last record.
func (h *Handler) schedule(journal string) (s epoch.Schedule, as int64) {
	h.cfg.Folds[journal].View(func(state decide.State, at record.Position) {
		if c, ok := state.(decide.Facts); ok {
			s, as = c.Commitments(), at.Sequence
		}
	})
	return s, as
}

// rotated is the response to a rotation.
type rotated struct {
	Journal    string `json:"journal"`
	Generation int    `json:"generation"`
	Secret     string `json:"secret"`
}

// rotateCommitment puts the next generation of the venue's secret in force; the first time it names the first one. The secret
// is durable in the key store before the record names it. If two requests race, both use the same secret and the second is
// refused. A key store that lacks the secret in force is another one, and no secret is made there.
func (h *Handler) rotateCommitment(c echo.Context) error {
	if err := rest.BodyAbsent(c); err != nil {
		return err
	}
	payload := new(decide.RotateCommitment)
	to, repeated, err := h.journalOf(c, rest.Param(c, "journal"), payload)
	if err != nil {
		return err
	}
	if !repeated {
		s, _ := h.schedule(to.Name)
		secret, err := h.nextSecret(c.Request().Context(), &s)
		if err != nil {
			return secretsFailed(err)
		}
		payload.Generation, payload.Secret = secret.Generation, secret.ID
	}
	e, err := rest.Execute[*decide.CommitmentRotated](c, to, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rotated{to.Name, e.Generation, e.Secret})
}

// nextSecret makes the secret of the generation after the last one of a journal.
func (h *Handler) nextSecret(ctx context.Context, s *epoch.Schedule) (seal.Secret, error) {
	if last := s.Generation(); last > 0 {
		_, named := s.At(maxSequence)
		if found, err := h.generations().Get(ctx, last); err != nil {
			return seal.Secret{}, err
		} else if found.ID != named {
			return seal.Secret{}, fmt.Errorf("generation %d: %w", last, commitment.ErrAnotherSecret)
		}
	}
	return h.generations().Create(ctx, s.Generation()+1)
}

// disclosed is the response to a disclosure.
type disclosed struct {
	Journal   string        `json:"journal"`
	JournalID scalar.ID     `json:"journal_id"`
	From      int64         `json:"from"`
	To        int64         `json:"to"`
	Recipient string        `json:"recipient"`
	Keys      []spanWithKey `json:"keys"`
}

// spanWithKey is a span of sequences and its epoch key.
type spanWithKey struct {
	From       int64  `json:"from"`
	To         int64  `json:"to"`
	Generation int    `json:"generation"`
	Key        []byte `json:"key"`
}

// discloseCommitment records who gets epoch keys, and then returns them.
func (h *Handler) discloseCommitment(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &decide.DiscloseCommitment{From: body.Integer("from", 0, maxSequence), To: body.Integer("to", 0, maxSequence), Recipient: body.String("recipient")}
	if err := body.Done(); err != nil {
		return err
	}
	if payload.To-payload.From >= maxDisclosed {
		return decide.InvalidField("to", fmt.Sprintf("at most the keys of %d records are returned at once", maxDisclosed))
	}
	to, _, err := h.journalOf(c, rest.Param(c, "journal"), payload)
	if err != nil {
		return err
	}
	x, err := to.Execute(rest.RequestOf(c), payload, body)
	if err != nil {
		return err
	}
	e, err := operation.Answer[*decide.CommitmentDisclosed](x)
	if err != nil {
		return err
	}
	out := disclosed{Journal: to.Name, JournalID: x.Entry.Journal, From: e.From, To: e.To, Recipient: e.Recipient}
	if out.Keys, err = h.epochKeys(c.Request().Context(), to.Name, x, e); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// maxSequence is a sequence that will never be reached.
const maxSequence = 1 << 53

// epochKeys returns the keys of a recorded disclosure.
func (h *Handler) epochKeys(ctx context.Context, journal string, x operation.Executed, e *decide.CommitmentDisclosed) ([]spanWithKey, error) {
	schedule, as := h.schedule(journal)
	if at := x.Entry.Record.Sequence; as < at {
		return nil, problem.Unavailable("NOT_READ_YET", "The disclosure is recorded, and this node has not read it yet: repeat the request with the same Idempotency-Key.", time.Second)
	}
	keys := commitment.NewKeys(x.Entry.Journal, h.generations().Secret)
	keys.Schedule = schedule
	out := []spanWithKey{}
	// A later rotation may have shortened the last span since.
	for _, span := range schedule.Spans(e.From, e.To, maxDisclosed) {
		key, err := keys.At(ctx, span.From)
		if err != nil {
			return nil, secretsFailed(err)
		}
		out = append(out, spanWithKey{span.From, span.To, span.Generation, key.Bytes()})
	}
	return out, nil
}

// secretsFailed returns the error for a key store that does not answer or lacks a secret.
func secretsFailed(err error) error {
	return problem.SourceFailed(fmt.Errorf("the secrets of record roots: %w", err))
}
