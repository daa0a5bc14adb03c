package peer

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The limits of the streams to an owner.
const (
	maxCommands   = 1024     // unanswered commands of a stream
	leastCommands = 64       // of a stream, however many there are: the owner's queue refuses what it has no room for
	allCommands   = 8192     // about the unanswered commands of all streams of a shard; the length of the owner's queue
	maxBytes      = 16 << 20 // of the payloads of a stream's unanswered commands

	handshakeTimeout = 2 * time.Second
	// silence is how long a side waits for the other, which sends something every pingInterval, or for room to write.
	silence      = 3 * time.Second
	pingInterval = 250 * time.Millisecond
	// remembered is how long an owner remembers which commands it received over a stream that has ended. It is longer than
	// any command waits for its answer.
	remembered = time.Minute
)

// Term describes an owner's term.
type Term struct {
	Number  int64
	Taken   record.Hash // of the term's first record
	Journal scalar.ID   // the identity of the journal
	Log     string      // the identity of the Kafka cluster and topic
}

// ServerConfig configures a Server.
type ServerConfig struct {
	Key         []byte        // a secret that all nodes of the venue share
	Venue       func() string // see binding; "" if it is not known yet
	Node, Build string
	Logger      *slog.Logger

	// Clock is the monotonic clock of the owners, which counts the time during which the machine is suspended.
	Clock func() time.Duration
	// Owners has the owners on this node decide commands. It MUST obey submit.InTerm.
	Owners submit.Enqueuer
	// Term returns the valid term of this node's owner of a shard, or false if there is none.
	Term func(ctx context.Context, s submit.Shard) (Term, bool, error)
	// Forms returns the forms of a journal's payloads, sorted by type.
	Forms func(journal string) []Form
	// Payload returns a zero payload for a type of command, or false if the journal has no such commands.
	Payload func(journal, commandType string) (decide.Payload, bool)
	// Judge returns an error if a credential has been revoked since it was judged on another node. It may be nil.
	Judge func(submit.Credential) error
}

// Server is the owner's side of the streams. It serves Path.
type Server struct {
	cfg         ServerConfig
	incarnation nonce

	mu       sync.Mutex
	sessions map[origin]*session // the last one of each origin
	granted  map[submit.Shard]int
	leaving  bool
	serving  sync.WaitGroup
}

// origin identifies the streams of which only one may be open.
type origin struct {
	incarnation nonce
	shard       submit.Shard
}

// NewServer returns a server.
func NewServer(c ServerConfig) *Server {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Forms == nil {
		c.Forms = func(string) []Form { return nil }
	}
	if c.Judge == nil {
		c.Judge = func(submit.Credential) error { return nil }
	}
	return &Server{cfg: c, incarnation: newNonce(), sessions: make(map[origin]*session), granted: make(map[submit.Shard]int)}
}

// JudgedBy sets ServerConfig.Judge. It MUST be called before the first stream.
func (s *Server) JudgedBy(judge func(submit.Credential) error) { s.cfg.Judge = judge }

// now returns the time on the clock of the deadlines.
func (s *Server) now() stamp { return stampOf(s.cfg.Clock()) }

// Close ends all streams and waits until they have ended. Answers that are ready are sent. No stream is opened afterwards.
func (s *Server) Close() {
	s.mu.Lock()
	s.leaving = true
	for _, open := range s.sessions {
		open.leave()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// refusedStream is the HTTP status of a stream that is not opened.
type refusedStream struct {
	status int
	reason string
}

// Error returns the reason.
func (r *refusedStream) Error() string { return r.reason }

// ServeHTTP serves one stream until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 {
		http.Error(w, "streams need HTTP/2", http.StatusHTTPVersionNotSupported)
		return
	}
	control := http.NewResponseController(w)
	ses := &session{server: s, in: newFrames(r.Body), response: w, control: control, open: make(map[uint64]*incoming), wake: make(chan struct{}, 1),
		quiet: make(chan struct{})}
	ses.extend(handshakeTimeout)
	ses.revision = revisionOf(r.Header)
	w.Header().Set(revisionHeader, strconv.FormatUint(ses.revision, 10))
	err := s.serve(r.Context(), ses)
	var refused *refusedStream
	if errors.As(err, &refused) {
		http.Error(w, refused.reason, refused.status)
	}
	s.cfg.Logger.Debug("a stream of commands has ended", "node", ses.hello.node, "journal", ses.hello.shard.Journal, "error", err)
}

func (s *Server) serve(ctx context.Context, ses *session) error {
	term, err := s.receive(ctx, ses)
	if err != nil {
		return err
	}
	granted, err := s.grant(ses)
	if err != nil {
		return err
	}
	defer s.serving.Done()
	ses.term, ses.commands = term.Number, granted
	own := newNonce()
	key, err := streamKey(s.cfg.Key, ses.hello.nonce, own, binding{revision: ses.revision, venue: s.cfg.Venue(), log: term.Log, journal: term.Journal,
		shard: ses.hello.shard, term: term.Number, taken: term.Taken})
	if err != nil {
		return err
	}
	ses.proveIn, ses.proveOut = newProver(key, toOwner), newProver(key, toNode)
	ses.response.WriteHeader(http.StatusOK)
	hi := welcome{node: s.cfg.Node, build: s.cfg.Build, incarnation: s.incarnation, nonce: own, term: term.Number, taken: term.Taken,
		commands: uint64(granted), bytes: maxBytes}
	if err := ses.write(kindWelcome, hi.visit); err != nil {
		return err
	}
	// The node has proved that it has the key only with this frame, so no earlier stream is ended before.
	var forms []Form
	if err := ses.in.expect(ses.proveIn, kindOpen, maxForms, visitOpen(ses.revision, &forms)); err != nil {
		return err
	}
	ses.in.widen()
	s.count(ses, granted)
	defer s.count(ses, -granted)
	if _, differ := compareForms(forms, s.cfg.Forms(ses.hello.shard.Journal)); len(differ) > 0 {
		s.cfg.Logger.Info("the build of another node has other forms of commands", "node", ses.hello.node, "build", ses.hello.build, "types", differ)
	}
	done, err := s.replace(ctx, ses)
	if err != nil {
		return err
	}
	defer done()
	return ses.run()
}

// receive reads the hello and returns this node's term of the shard.
func (s *Server) receive(ctx context.Context, ses *session) (t Term, err error) {
	content, proof, err := ses.in.next(maxHello)
	if err != nil {
		return Term{}, &refusedStream{http.StatusBadRequest, "there is no hello"}
	}
	proven := hmac.Equal(proof, newProver(s.cfg.Key, toOwner).prove(content))
	if !proven || kind(content[0]) != kindHello || pack.Read(content[1:], ses.hello.visit) != nil {
		return Term{}, &refusedStream{http.StatusForbidden, "this route is for the nodes of this venue"}
	}
	if ses.hello.wire != wire {
		return Term{}, &refusedStream{http.StatusNotFound, fmt.Sprintf("this node has protocol %d", wire)}
	}
	t, serving, err := s.cfg.Term(ctx, ses.hello.shard)
	switch {
	case err != nil:
		return Term{}, &refusedStream{http.StatusServiceUnavailable, "the owner does not answer"}
	case !serving:
		return Term{}, &refusedStream{http.StatusServiceUnavailable, "this node does not own the journal"}
	case s.cfg.Venue() == "":
		return Term{}, &refusedStream{http.StatusServiceUnavailable, "this node does not know yet which venue it is"}
	case t.Log == "":
		return Term{}, &refusedStream{http.StatusServiceUnavailable, "this node does not know which log it serves"}
	}
	return t, nil
}

// grant returns how many commands of a new stream may be unanswered.
func (s *Server) grant(ses *session) (commands int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return 0, &refusedStream{http.StatusServiceUnavailable, "this node takes no more streams"}
	}
	commands = max(leastCommands, min(maxCommands, (allCommands-s.granted[ses.hello.shard])/2))
	s.serving.Add(1)
	return commands, nil
}

// count adds to the number of commands that the streams of a shard are granted. A stream counts once the node has proved that
// it has the key, so that a replayed hello does not reduce the credit of other nodes.
func (s *Server) count(ses *session, commands int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted[ses.hello.shard] += commands
}

// replace ends the earlier stream of the same process of the node, opens the new one, and sends the node the number of the
// last command received over the earlier one. The caller must call done when the stream has ended.
func (s *Server) replace(ctx context.Context, ses *session) (done func(), err error) {
	from := origin{ses.hello.incarnation, ses.hello.shard}
	var cancel context.CancelFunc
	ses.ctx, cancel = context.WithCancel(submit.InTerm(ctx, ses.term))
	s.mu.Lock()
	for o, old := range s.sessions {
		if ended := old.endedAt(); !ended.IsZero() && time.Since(ended) > remembered {
			delete(s.sessions, o)
		}
	}
	var answer opened
	earlier := s.sessions[from]
	if earlier != nil { // before a later session can take over from this one
		answer.earlier, answer.last = true, earlier.end()
		ses.last = answer.last
	}
	s.sessions[from] = ses
	if s.leaving {
		ses.leave()
	}
	s.mu.Unlock()
	done = func() {
		cancel()
		ses.end() // withdraws the undecided commands
		close(ses.quiet)
	}
	if earlier != nil { // its reader may be about to queue a command, which must come before those of this session
		select {
		case <-earlier.quiet:
		case <-ctx.Done():
			done()
			return nil, ctx.Err()
		}
	}
	answer.now, answer.forms = s.now(), s.cfg.Forms(ses.hello.shard.Journal)
	if err := ses.write(kindOpened, answer.visit(ses.revision)); err != nil {
		done()
		return nil, err
	}
	return done, nil
}
