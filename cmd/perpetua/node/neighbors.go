package node

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// Nodes ask each other for their terms: an API node checks that the owner which the log names serves the same log, and
// a standby checks that the owner still works. Question and answer both carry a proof by a key that all nodes derive
// from their master key, and the proof of the answer covers the question's nonce. A question carries no time: a replay
// can only delay refusals.
const (
	termPath  = "/internal/v1/term"
	peerProof = "X-Perpetua-Proof" // HMAC-SHA-256 of the body, in hex
	termBody  = 4 << 10
	// Time that a term's goroutine has to answer; shorter than a standby waits for the answer.
	termPatience = 300 * time.Millisecond
	nonceSize    = 16
)

// newTermKey derives the key of the proofs.
func newTermKey(box *seal.Box) []byte { return box.Derive("terms") }

// termQuestion asks a node for its term of a partition.
type termQuestion struct {
	Nonce      string `json:"nonce"`
	Journal    string `json:"journal"`
	Partition  int32  `json:"partition"`
	Engine     string `json:"engine,omitempty"`
	LastAnswer int64  `json:"heard,omitempty"`
}

// termAnswer is the answer. Without a valid term it holds the nonce and the stamp alone.
type termAnswer struct {
	Nonce   string    `json:"nonce"`
	Stamp   int64     `json:"stamp,omitempty"`
	Serving bool      `json:"serving"`
	Log     string    `json:"log,omitempty"`
	Term    int64     `json:"term,omitempty"`
	Taken   string    `json:"taken,omitempty"` // hash of the term's record, in hex
	ID      scalar.ID `json:"journal_id,omitzero"`
}

// neighbors asks other nodes for their terms and their rules. It implements ownership.Neighbors.
type neighbors struct {
	key    []byte
	client *http.Client
}

func newNeighbors(box *seal.Box) *neighbors {
	transport := newNodeTransport()
	transport.MaxIdleConnsPerHost = 8 // several for each journal
	transport.DialContext = (&net.Dialer{Timeout: time.Second}).DialContext
	return &neighbors{newTermKey(box), &http.Client{Transport: transport}}
}

// newNodeTransport returns a transport to other nodes. It uses no proxy of the environment, and only HTTP/1: over HTTP/2 all
// questions would share a connection, and fail together when it is silently dropped.
func newNodeTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.TLSClientConfig, transport.ForceAttemptHTTP2 = nil, nil, false
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	return transport
}

// Term implements ownership.Neighbors.
func (n *neighbors) Term(ctx context.Context, url string, q ownership.Question) (ownership.Term, error) {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	question := termQuestion{hex.EncodeToString(nonce), q.Journal, q.Partition, q.Engine, q.LastAnswer}
	body, err := json.Marshal(question)
	if err != nil {
		return ownership.Term{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+termPath, bytes.NewReader(body))
	if err != nil {
		return ownership.Term{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(peerProof, proofOf(n.key, body))
	response, err := n.client.Do(r)
	if err != nil {
		return ownership.Term{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, termBody))
	switch {
	case err != nil:
		return ownership.Term{}, err
	case response.StatusCode == http.StatusServiceUnavailable:
		return ownership.Term{}, fmt.Errorf("%w: %s, of %s", ownership.ErrSilent, url, q.Journal)
	case response.StatusCode != http.StatusOK:
		return ownership.Term{}, fmt.Errorf("%w: %s answered %s", ownership.ErrNoSuchQuestion, url, response.Status)
	case !hmac.Equal([]byte(response.Header.Get(peerProof)), []byte(proofOf(n.key, text))):
		return ownership.Term{}, fmt.Errorf("%s did not prove that it is a node of this venue", url)
	}
	return question.term(text)
}

// term decodes the answer to a question.
func (q termQuestion) term(text []byte) (ownership.Term, error) {
	var a termAnswer
	if err := json.Unmarshal(text, &a); err != nil {
		return ownership.Term{}, err
	}
	if a.Nonce != q.Nonce {
		return ownership.Term{}, fmt.Errorf("the answer is to another question")
	}
	if !a.Serving {
		return ownership.Term{Stamp: a.Stamp}, nil
	}
	t := ownership.Term{Stamp: a.Stamp, Log: a.Log, Serving: true, Standing: term.Standing{Term: a.Term, Journal: a.ID}}
	hash, err := hex.DecodeString(a.Taken)
	if err != nil || len(hash) != len(t.Taken) {
		return ownership.Term{}, fmt.Errorf("%q is no hash of a record", a.Taken)
	}
	copy(t.Taken[:], hash)
	return t, nil
}

func proofOf(key, body []byte) string { return hex.EncodeToString(seal.MAC(key, body)) }

// terms returns the terms of this node.
type terms interface {
	Term(ctx context.Context, q ownership.Question) (ownership.Term, error)
}

// termServer answers other nodes that ask for this node's terms.
type termServer struct {
	terms terms
	key   []byte
}

func (s termServer) serve(c echo.Context) error {
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, termBody))
	if err != nil {
		return err
	}
	var q termQuestion
	proven := hmac.Equal([]byte(c.Request().Header.Get(peerProof)), []byte(proofOf(s.key, body)))
	if !proven || json.Unmarshal(body, &q) != nil {
		return problem.Forbidden("This route is for the nodes of this venue.")
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), termPatience)
	defer cancel()
	t, err := s.terms.Term(ctx, ownership.Question{Journal: q.Journal, Partition: q.Partition, Engine: q.Engine, LastAnswer: q.LastAnswer})
	if err != nil { // the goroutine is silent
		return c.NoContent(http.StatusServiceUnavailable)
	}
	a := termAnswer{Nonce: q.Nonce, Stamp: t.Stamp, Serving: t.Serving}
	if t.Serving {
		a.Log, a.Term, a.Taken, a.ID = t.Log, t.Standing.Term, t.Taken.String(), t.Standing.Journal
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	c.Response().Header().Set(peerProof, proofOf(s.key, text))
	return c.JSONBlob(http.StatusOK, text)
}
