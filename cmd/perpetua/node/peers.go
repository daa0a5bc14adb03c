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

// Some commands do not come from a client and cannot use the operator's interface. The seed of a venue precedes its
// first user and its first signing key, and a node itself observes the use of an API key. If another node owns the
// journal, the command is sent to that node on a separate route. The route accepts only the command types in
// Journal.FromNodes, and only with a proof by a key that all nodes derive from the master key.
const (
	peerPath   = "/internal/v1/commands"
	peerProof  = "X-Perpetua-Proof" // HMAC-SHA-256 of the body, in hex
	peerBody   = 1 << 20            // bytes; fits the largest number of receipts in one command
	peerReply  = 8 << 20            // bytes of an answer; fits the longest record
	peerOldest = time.Minute        // maximum age of a command, so that it cannot be replayed later
	// peerIdle is the number of idle connections kept to a node. A sender submits many receipts concurrently, and a new
	// connection would cost more than the receipt.
	peerIdle = 256
)

// peerCommand is the form of a command sent to another node.
type peerCommand struct {
	Sent    time.Time       `json:"sent"`
	Journal string          `json:"journal"`
	ID      scalar.ID       `json:"id"`
	Type    string          `json:"type"`
	Actor   decide.Actor    `json:"actor"`
	Kept    decide.Metadata `json:"kept"`
	Payload json.RawMessage `json:"payload"`
}

// peerAnswer is the answer to a peerCommand.
type peerAnswer struct {
	Position string          `json:"position,omitempty"` // position of the record, or of the state that a refusal refers to
	Repeated bool            `json:"repeated,omitempty"`
	Record   []byte          `json:"record,omitempty"` // the record that answers the command, as stored in the log
	Refusal  *decide.Refusal `json:"refusal,omitempty"`
	Code     string          `json:"code,omitempty"`      // NOT_ACCEPTED, OUTCOME_UNKNOWN or empty
	NotOwner bool            `json:"not_owner,omitempty"` // with NOT_ACCEPTED: the node does not own the journal
	Error    string          `json:"error,omitempty"`
}

// peers submits commands to the owners of their journals, on any node. It implements journal.Submitter. The entry of a
// result from another node has only the record.
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

// payload decodes the payload of a command. It fails if the command's type is not accepted from other nodes.
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

// maxOwners is the maximum number of nodes that a command is sent to, each after the previous one turned out not to be
// the owner.
const maxOwners = 3

// errNotOwner reports that a node did not take a command, because it does not own the journal or cannot be reached.
var errNotOwner = errors.New("the node does not own the journal")

// Submit submits a command to the journal's owner, on this node or another one.
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

// send submits a command to another node. It returns errNotOwner if that node did not take it.
func (p *peers) send(ctx context.Context, url, name string, c decide.Command) (submit.Result, error) {
	payload, err := json.Marshal(c.Payload)
	if err != nil {
		return submit.Result{}, err
	}
	body, err := json.Marshal(peerCommand{time.Now(), name, c.ID, c.Type, c.Actor, c.Metadata, payload})
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

// result converts the answer back into the result of the owner's Submit.
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
	if a.Record == nil { // the command's work continues
		return submit.Result{Position: at, Repeated: a.Repeated}, nil
	}
	answer, err := record.Decode(rules.Registry(), a.Record)
	if err != nil {
		return submit.Result{}, fmt.Errorf("the record that answers %s: %w", c.Type, err)
	}
	return submit.Result{Position: at, Repeated: a.Repeated, Entry: &record.Entry{Record: answer, Value: a.Record}}, nil
}

// serve answers a command of another node.
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
	result, err := p.owners.Submit(submit.OnlyHere(c.Request().Context()), command.Journal,
		decide.Command{ID: command.ID, Type: command.Type, Actor: command.Actor, Metadata: command.Kept, Payload: payload})
	return c.JSON(http.StatusOK, answerTo(result, err))
}

func answerTo(result submit.Result, err error) peerAnswer {
	var (
		refused   *submit.RefusedError
		busy      *submit.NotAcceptedError
		unknown   *submit.OutcomeUnknownError
		elsewhere *submit.ElsewhereError // a command that was forwarded once is not forwarded again
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
