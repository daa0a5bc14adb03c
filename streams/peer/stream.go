package peer

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// streamState is the state of a stream.
type streamState uint8

const (
	opening streamState = iota
	open
	closed
)

// stream is the node's side of a stream.
type stream struct {
	shard *shard
	url   string
	ctx   context.Context
	stop  context.CancelFunc
	wake  chan struct{} // tells the writer that there is something to write
	limit *time.Timer   // ends the stream when the owner is silent

	transport *http.Transport // of this stream alone
	// Set while the stream is opened, and constant afterwards:
	to       *io.PipeWriter // the body of the request
	from     *frames
	proveOut *prover
	proveIn  *prover
	owner    nonce
	commands int // credit
	maxBytes int // credit
	unserved bool
	unknown  map[string]bool // types of commands that the owner does not know

	frame []byte // buffer of the writer

	// The shard's lock protects the following.
	state      streamState
	term       int64
	queue      []*batch         // not sent yet
	calls      map[uint64]*call // sent, without an answer
	unanswered int
	bytes      int           // of the payloads of the unanswered commands
	canceled   []uint64      // commands to be named in a Cancel frame
	leaving    bool          // the owner takes nothing more
	clock      stamp         // the owner's clock, as of clockAt
	clockAt    time.Duration // on the client's clock
	answerTime time.Duration // how long answers take on average
}

func newStream(s *shard, url string) *stream {
	ctx, stop := context.WithCancel(context.Background())
	return &stream{shard: s, url: url, ctx: ctx, stop: stop, wake: make(chan struct{}, 1), calls: make(map[uint64]*call),
		limit: time.AfterFunc(handshakeTimeout, stop), transport: s.client.newTransport()}
}

// notify wakes the writer.
func (st *stream) notify() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// run opens the stream and serves it until it ends.
func (st *stream) run() {
	defer st.limit.Stop()
	response, err := st.open()
	if err == nil {
		defer response.Body.Close()
		err = st.serve()
	}
	st.stop()
	if st.to != nil {
		st.to.Close()
	}
	st.transport.CloseIdleConnections()
	st.shard.client.cfg.Logger.Debug("a stream to an owner has ended", "journal", st.shard.id.Journal, "url", st.url, "error", err)
	st.shard.ended(st, err)
}

// open opens the stream.
func (st *stream) open() (_ *http.Response, err error) {
	c := st.shard.client
	known, err := st.shard.binding(st.ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	hi := hello{wire: wire, node: c.cfg.Node, build: c.cfg.Build, incarnation: c.incarnation, nonce: newNonce(), shard: st.shard.id}
	response, err := st.request(hi)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			response.Body.Close()
		}
	}()
	st.from = newFrames(response.Body)
	known.revision = revisionOf(response.Header)
	if err := st.welcomed(hi, known); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	forms := c.cfg.Forms(st.shard.id.Journal)
	if _, err := st.to.Write(appendFrame(nil, st.proveOut, kindOpen, visitOpen(known.revision, &forms))); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	var o opened
	if err := st.from.expect(st.proveIn, kindOpened, maxForms, o.visit(known.revision)); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	st.from.widen()
	if known.revision >= withForms {
		st.compare(forms, o.forms)
	}
	st.limit.Reset(silence)
	return response, st.shard.opened(st, o)
}

// compare stores the types of commands that are unknown to the owner. It logs those and the types with different forms: the owner
// does not accept a payload with an unknown member.
func (st *stream) compare(ours, owners []Form) {
	unknown, differ := compareForms(ours, owners)
	st.unknown = unknown
	if len(unknown)+len(differ) > 0 {
		st.shard.client.cfg.Logger.Info("the owner's build has other forms of commands", "journal", st.shard.id.Journal, "url", st.url,
			"types", differ, "unknown", slices.Sorted(maps.Keys(unknown)))
	}
}

// request sends the hello and returns the response.
func (st *stream) request(hi hello) (*http.Response, error) {
	c := st.shard.client
	body, to := io.Pipe()
	st.to = to
	// net/http does not look at the context while it waits for the next bytes of the body.
	context.AfterFunc(st.ctx, func() { to.CloseWithError(context.Canceled) })
	r, err := http.NewRequestWithContext(st.ctx, http.MethodPost, st.url+Path, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOwner, err)
	}
	r.Header.Set(revisionHeader, strconv.Itoa(revision))
	r.GetBody, r.ContentLength = nil, -1 // so that net/http never sends the request twice
	first := appendFrame(nil, newProver(c.cfg.Key, toOwner), kindHello, hi.visit)
	go func() { _, _ = to.Write(first) }() // ends with the request's body
	response, err := st.transport.RoundTrip(r)
	var dial *net.OpError
	switch {
	case st.ctx.Err() != nil, errors.As(err, &dial) && dial.Op == "dial":
		if err == nil {
			response.Body.Close()
		}
		return nil, fmt.Errorf("%w: %s does not answer: %w", errNotOwner, st.url, errors.Join(err, st.ctx.Err()))
	case err != nil && strings.Contains(err.Error(), "HTTP/1"): // the node speaks only HTTP/1.1
		st.unserved = true
		return nil, fmt.Errorf("%w: %w", errNoStreams, err)
	case err != nil: // the connection broke, or an HTTP/1.1 server closed it
		return nil, fmt.Errorf("%w: %s opens no stream: %w", errNotOwner, st.url, err)
	case response.StatusCode == http.StatusOK:
		return response, nil
	}
	reason, _ := io.ReadAll(io.LimitReader(response.Body, maxHello)) // only for the log
	response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%w: %s: %s", errNotOwner, st.url, reason)
	}
	st.unserved = true
	return nil, fmt.Errorf("%w: %s: %s", errNoStreams, response.Status, reason)
}

// welcomed reads the owner's welcome and derives the key.
func (st *stream) welcomed(hi hello, known binding) error {
	content, proof, err := st.from.next(maxHello)
	if err != nil {
		return err
	}
	var w welcome
	if kind(content[0]) != kindWelcome {
		return errFrame
	}
	if err := pack.Read(content[1:], w.visit); err != nil {
		return err
	}
	switch {
	case w.term < known.term:
		return fmt.Errorf("its term %d has ended", w.term)
	case w.term == known.term && known.taken != (record.Hash{}) && w.taken != known.taken:
		return errors.New("its term began with another record than the one in this node's log")
	}
	known.term, known.taken = w.term, w.taken
	key, err := streamKey(st.shard.client.cfg.Key, hi.nonce, w.nonce, known)
	if err != nil {
		return err
	}
	st.proveIn, st.proveOut = newProver(key, toNode), newProver(key, toOwner)
	if !hmac.Equal(proof, st.proveIn.prove(content)) {
		return fmt.Errorf("%w: it serves another log, or is a node of another venue", errProof)
	}
	st.owner, st.term, st.commands, st.maxBytes = w.incarnation, w.term, int(w.commands), int(w.bytes)
	return nil
}

// serve writes commands and reads answers until the stream ends.
func (st *stream) serve() error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer st.stop()
		st.writeAll()
	}()
	defer func() { <-written }()
	defer st.to.Close() // ends a write
	defer st.stop()
	for {
		k, body, err := st.from.verified(st.proveIn, maxFrame)
		if err != nil {
			return err
		}
		st.limit.Reset(silence)
		if err := st.take(k, body); err != nil {
			return err
		}
	}
}

// take processes a frame of the owner.
func (st *stream) take(k kind, body []byte) error {
	switch k {
	case kindAnswer:
		var a answers
		if err := pack.Read(body, a.visit); err != nil {
			return err
		}
		return st.answered(a)
	case kindPong:
		var now stamp
		if err := pack.Read(body, visitStamp(&now)); err != nil {
			return err
		}
		st.shard.mu.Lock()
		st.clock, st.clockAt = now, st.shard.client.cfg.Clock()
		st.shard.mu.Unlock()
	case kindLeaving:
		st.shard.mu.Lock()
		defer st.shard.mu.Unlock()
		st.leave("the owner is stopping")
	default:
		return fmt.Errorf("%w: of kind %d", errFrame, k)
	}
	return nil
}

// leave sends nothing more and ends the stream once everything is answered. The caller must hold the shard's lock.
func (st *stream) leave(reason string) {
	st.leaving = true
	for _, b := range st.queue {
		st.shard.fail(b, reason)
	}
	st.queue = nil
	if st.unanswered == 0 {
		st.stop()
	}
}
