package node

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The seeds of a venue come before its first user and its first key for tokens, so they can't be sent through the
// operator's interface; and what a node itself has seen, the use of an API key, no client asked for. Where another node
// owns the journal that they are for, they go to that node on a route of its own, which takes these types of commands
// only, and only with a proof by the key that all nodes derive from their master key.
const (
	peerPath   = "/internal/v1/commands"
	peerProof  = "X-Perpetua-Proof" // HMAC-SHA-256 of the body, in hex
	peerBody   = 1 << 20            // as many receipts as a command may hold
	peerReply  = 8 << 20            // of an answer, with a record as long as records may be
	peerOldest = time.Minute        // that a command may be on its way, so that nobody can send it again later
	// peerIdle is how many connections to a node are kept. A sender's receipts go there many at a time, and a connection for
	// each would cost more than the receipt.
	peerIdle = 256
)

// peerCommand is a command on its way to another node.
type peerCommand struct {
	Sent    time.Time       `json:"sent"`
	Journal string          `json:"journal"`
	ID      scalar.ID       `json:"id"`
	Type    string          `json:"type"`
	Actor   decide.Actor    `json:"actor"`
	Kept    decide.Kept     `json:"kept"`
	Payload json.RawMessage `json:"payload"`
}

// peerAnswer is its outcome.
type peerAnswer struct {
	Position string          `json:"position,omitempty"` // of the record, or of the state that a refusal is as of
	Repeated bool            `json:"repeated,omitempty"`
	Record   []byte          `json:"record,omitempty"` // that answers the command, as it stands in the log
	Refusal  *decide.Refusal `json:"refusal,omitempty"`
	Code     string          `json:"code,omitempty"`      // NOT_ACCEPTED, OUTCOME_UNKNOWN or empty
	NotOwner bool            `json:"not_owner,omitempty"` // with NOT_ACCEPTED: the node does not own the journal
	Error    string          `json:"error,omitempty"`
}

// peers submits commands to the owners of their journals, as a submit.Submitter does. Of an entry that comes from another
// node there is the record only.
type peers struct {
	owners   submit.Submitter
	journals journals.Table
	key      []byte
	client   *http.Client
}

func newPeers(owners submit.Submitter, table journals.Table, box *seal.Box) *peers {
	transport := newNodeTransport()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, peerIdle
	return &peers{owners, table, box.Derive("peers"), &http.Client{Timeout: 15 * time.Second, Transport: transport}}
}

// payload reads what a command asks for, if it is one of those that are taken from other nodes.
func (p *peers) payload(c peerCommand) (any, error) {
	j, err := p.journals.Of(c.Journal)
	if err != nil {
		return nil, err
	}
	payload, known := j.Payloads.New(c.Type)
	if !known || !slices.Contains(j.FromNodes, c.Type) {
		return nil, fmt.Errorf("%q is not taken from other nodes", c.Type)
	}
	return payload, json.Unmarshal(c.Payload, payload)
}

func (p *peers) proof(body []byte) string {
	return hex.EncodeToString(seal.MAC(p.key, body))
}

// maxOwners is how many nodes a command is sent to, each after the one before it has turned out not to be the owner.
const maxOwners = 3

// errNotOwner says that a node has not taken a command: it does not own the journal, or can't be reached.
var errNotOwner = errors.New("the node does not own the journal")

// Submit has a command decided here or, where the journal's owner is elsewhere, there.
func (p *peers) Submit(ctx context.Context, name string, c decide.Command) (submit.Result, error) {
	result, err := p.owners.Submit(ctx, name, c)
	var elsewhere *submit.ElsewhereError
	if !errors.As(err, &elsewhere) {
		return result, err
	}
	for tries := 1; ; tries++ {
		result, err := p.send(ctx, elsewhere.URL, name, c)
		if !errors.Is(err, errNotOwner) {
			return result, err
		}
		if tries < maxOwners && elsewhere.Next != nil {
			elsewhere = elsewhere.Next(ctx)
		} else {
			elsewhere = nil
		}
		if elsewhere == nil {
			return submit.Result{}, &submit.NotAcceptedError{RetryAfter: time.Second, Reason: err.Error()}
		}
	}
}

// send has a command decided by another node. An errNotOwner says that it was not taken there.
func (p *peers) send(ctx context.Context, url, name string, c decide.Command) (submit.Result, error) {
	payload, err := json.Marshal(c.Payload)
	if err != nil {
		return submit.Result{}, err
	}
	body, err := json.Marshal(peerCommand{time.Now(), name, c.ID, c.Type, c.Actor, c.Kept, payload})
	if err != nil {
		return submit.Result{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+peerPath, bytes.NewReader(body))
	if err != nil {
		return submit.Result{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(peerProof, p.proof(body))
	response, err := p.client.Do(r)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return submit.Result{}, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	if err != nil {
		return submit.Result{}, &submit.OutcomeUnknownError{CommandID: c.ID}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, peerReply))
	if err != nil {
		return submit.Result{}, &submit.OutcomeUnknownError{CommandID: c.ID}
	}
	var a peerAnswer
	if err := json.Unmarshal(text, &a); err != nil || response.StatusCode != http.StatusOK {
		return submit.Result{}, fmt.Errorf("%s answered %s to %s: %.200s", url, response.Status, c.Type, text)
	}
	j, err := p.journals.Of(name)
	if err != nil {
		return submit.Result{}, err
	}
	return a.result(c, j.Rules)
}

// result turns the answer back into what the owner's Submit returned.
func (a peerAnswer) result(c decide.Command, rules decide.Rules) (submit.Result, error) {
	switch {
	case a.NotOwner:
		return submit.Result{}, fmt.Errorf("%w: %s", errNotOwner, a.Error)
	case a.Code == submit.CodeNotAccepted:
		return submit.Result{}, &submit.NotAcceptedError{RetryAfter: time.Second, Reason: a.Error}
	case a.Code == submit.CodeOutcomeUnknown:
		return submit.Result{}, &submit.OutcomeUnknownError{CommandID: c.ID}
	case a.Error != "":
		return submit.Result{}, fmt.Errorf("%s: %s", c.Type, a.Error)
	}
	at, err := record.ParseLogPosition(a.Position)
	if err != nil {
		return submit.Result{}, err
	}
	if a.Refusal != nil {
		return submit.Result{}, &submit.RefusedError{Refusal: a.Refusal, AsOf: at}
	}
	if a.Record == nil { // the command's work goes on
		return submit.Result{Position: at, Repeated: a.Repeated}, nil
	}
	answer, err := record.Decode(rules.Registry(), a.Record)
	if err != nil {
		return submit.Result{}, fmt.Errorf("the record that answers %s: %w", c.Type, err)
	}
	return submit.Result{Position: at, Repeated: a.Repeated, Entry: &record.Entry{Record: answer, Value: a.Record}}, nil
}

// serve takes a command of another node.
func (p *peers) serve(c echo.Context) error {
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, peerBody))
	if err != nil {
		return err
	}
	var command peerCommand
	proven := hmac.Equal([]byte(c.Request().Header.Get(peerProof)), []byte(p.proof(body)))
	if !proven || json.Unmarshal(body, &command) != nil || time.Since(command.Sent).Abs() > peerOldest {
		return web.Forbidden("This route is for the nodes of this venue.")
	}
	payload, err := p.payload(command)
	if err != nil {
		return c.JSON(http.StatusOK, peerAnswer{Error: err.Error()})
	}
	result, err := p.owners.Submit(c.Request().Context(), command.Journal,
		decide.Command{ID: command.ID, Type: command.Type, Actor: command.Actor, Kept: command.Kept, Payload: payload})
	return c.JSON(http.StatusOK, answerTo(result, err))
}

func answerTo(result submit.Result, err error) peerAnswer {
	var (
		refused   *submit.RefusedError
		busy      *submit.NotAcceptedError
		unknown   *submit.OutcomeUnknownError
		elsewhere *submit.ElsewhereError // a request that was passed on once is not passed on again
	)
	switch {
	case err == nil:
		a := peerAnswer{Position: result.Position.String(), Repeated: result.Repeated}
		if result.Entry == nil {
			return a
		}
		if a.Record, err = record.Encode(nil, result.Entry.Record); err != nil {
			return peerAnswer{Error: err.Error()}
		}
		return a
	case errors.As(err, &refused):
		return peerAnswer{Position: refused.AsOf.String(), Refusal: refused.Refusal}
	case errors.As(err, &elsewhere):
		return peerAnswer{Code: submit.CodeNotAccepted, NotOwner: true, Error: err.Error()}
	case errors.As(err, &busy):
		return peerAnswer{Code: submit.CodeNotAccepted, NotOwner: busy.Unowned, Error: err.Error()}
	case errors.As(err, &unknown):
		return peerAnswer{Code: submit.CodeOutcomeUnknown, Error: err.Error()}
	}
	return peerAnswer{Error: err.Error()}
}
