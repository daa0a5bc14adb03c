package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// session is the owner's side of one stream.
type session struct {
	server   *Server
	hello    hello
	revision uint64
	term     int64
	commands int // credit
	ctx      context.Context

	in       *frames // used by the goroutine of the request
	proveIn  *prover
	response http.ResponseWriter // used by the writer once run has started
	control  *http.ResponseController
	proveOut *prover
	frame    []byte
	deadline time.Time // of reads and writes

	wake  chan struct{} // tells the writer that there is something to write
	quiet chan struct{} // closed when the session submits nothing more

	mu      sync.Mutex
	last    uint64               // highest number received
	open    map[uint64]*incoming // unanswered commands
	bytes   int                  // of their payloads
	answers []answer
	pong    bool // the node has sent a ping
	leaving bool
	ended   time.Time // when the stream ended; zero while it is open
}

// incoming is a command that a node has submitted.
type incoming struct {
	message
	command decide.Command
	batch   *enqueued // nil until the owner has it
}

// enqueued is a batch that the owner has.
type enqueued struct{ withdraw func() }

// withdrawAll withdraws the batches of commands.
func withdrawAll(batches map[*enqueued]struct{}) {
	for b := range batches {
		b.withdraw()
	}
}

var (
	errCredit = errors.New("the node has more unanswered commands than it was granted")
	errEnded  = errors.New("a later stream of the node has replaced this one")
)

// write writes a frame.
func (s *session) write(k kind, visit func(*pack.Coder)) error {
	s.frame = appendFrame(s.frame[:0], s.proveOut, k, visit)
	if _, err := s.response.Write(s.frame); err != nil {
		return err
	}
	return s.control.Flush()
}

// extend moves the deadline of reads and writes. Both sides send something every pingInterval, so that a stream without
// frames has lost its other side.
func (s *session) extend(by time.Duration) {
	now := time.Now()
	if s.deadline.Sub(now) > by-pingInterval/2 {
		return
	}
	s.deadline = now.Add(by)
	_ = s.control.SetReadDeadline(s.deadline) // an error of the connection appears with the next read or write
	_ = s.control.SetWriteDeadline(s.deadline)
}

// run receives commands until the stream ends.
func (s *session) run() error {
	ctx, stop := context.WithCancel(s.ctx)
	var writer sync.WaitGroup
	s.extend(silence)
	writer.Go(func() {
		s.writeAll(ctx)
		_ = s.control.SetReadDeadline(time.Now()) // ends the reading below
	})
	defer writer.Wait()
	defer stop()
	for {
		k, body, err := s.in.verified(s.proveIn, maxFrame)
		if err != nil {
			return err
		}
		if err := s.take(k, body); err != nil {
			return err
		}
	}
}

// take processes a frame.
func (s *session) take(k kind, body []byte) error {
	switch k {
	case kindSubmit:
		var all []message
		if err := pack.Read(body, list(&all, (*message).visit)); err != nil {
			return err
		}
		return s.submit(all)
	case kindCancel:
		var numbers []uint64
		if err := pack.Read(body, visitNumbers(&numbers)); err != nil {
			return err
		}
		withdrawAll(s.batchesOf(numbers))
	case kindPing:
		s.mu.Lock()
		s.pong = true
		s.mu.Unlock()
		s.notify()
	default:
		return fmt.Errorf("%w: of kind %d", errFrame, k)
	}
	return nil
}

// batchesOf returns the batches of unanswered commands.
func (s *session) batchesOf(numbers []uint64) map[*enqueued]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	batches := make(map[*enqueued]struct{})
	for _, n := range numbers {
		if c := s.open[n]; c != nil && c.batch != nil {
			batches[c.batch] = struct{}{}
		}
	}
	return batches
}

// submit hands commands to the owner, in their order. It returns when each is queued or refused.
func (s *session) submit(all []message) error {
	batches, err := s.admitAll(all)
	for _, b := range batches { // all at once, so that the owner can append their records together
		s.enqueue(b)
	}
	return err
}

// admitAll checks the commands of a frame and returns those that the owner has to decide, by batch. After an error it returns
// the ones before.
func (s *session) admitAll(all []message) (batches [][]*incoming, err error) {
	now := s.server.now()
	for len(all) > 0 {
		if all[0].after {
			return batches, fmt.Errorf("%w: it begins within a batch", errFrame)
		}
		n := 1
		for n < len(all) && all[n].after {
			n++
		}
		batch := make([]*incoming, 0, n)
		for i := range all[:n] {
			c, err := s.admit(&all[i], now)
			if err != nil {
				return batches, err
			}
			if c == nil { // already answered; the rest of its batch must not be decided
				for j := i + 1; j < n; j++ {
					if err := s.skip(&all[j]); err != nil {
						return batches, err
					}
				}
				break
			}
			batch = append(batch, c)
		}
		all = all[n:]
		if len(batch) > 0 {
			batches = append(batches, batch)
		}
	}
	return batches, nil
}

// receive counts a command. Its number MUST be higher than all earlier ones.
func (s *session) receive(m *message, c *incoming) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.ended.IsZero():
		return errEnded
	case m.number <= s.last:
		return fmt.Errorf("%w: command %d after %d", errFrame, m.number, s.last)
	case len(s.open)+len(s.answers) >= s.commands, s.bytes+len(m.payload) > maxBytes && s.bytes > 0:
		return errCredit
	}
	s.last = m.number
	s.open[m.number] = c
	s.bytes += len(m.payload)
	return nil
}

// admit checks a command. It returns nil if the command is answered without the owner.
func (s *session) admit(m *message, now stamp) (*incoming, error) {
	c := &incoming{message: *m}
	if err := s.receive(m, c); err != nil {
		return nil, err
	}
	if reason := s.check(c, now); reason != "" {
		s.answer(c, answer{kind: notAccepted, reason: reason})
		s.notify()
		return nil, nil
	}
	return c, nil
}

// check decodes a command and returns the reason why it must not be decided, or "".
func (s *session) check(c *incoming, now stamp) (reason string) {
	cfg := &s.server.cfg
	if now > c.deadline {
		return "the command arrived after its deadline"
	}
	payload, known := cfg.Payload(s.hello.shard.Journal, c.kind)
	if !known {
		cfg.Logger.Error("another node submits a command that this build does not know", "alarm", alarmUnknown, "type", c.kind, "node", s.hello.node,
			"build", s.hello.build)
		return "the owner does not know the command"
	}
	if err := DecodePayload(c.payload, payload); err != nil {
		cfg.Logger.Error("another node submits a command that this build cannot read", "alarm", alarmUnknown, "type", c.kind, "node", s.hello.node,
			"build", s.hello.build, "error", err)
		return "the owner cannot read the command"
	}
	if err := cfg.Judge(c.credential); err != nil {
		return "the owner knows that the credential was revoked: " + err.Error()
	}
	c.command = decide.Command{ID: c.id, Type: c.kind, Actor: c.actor, Metadata: c.metadata, Payload: payload}
	return ""
}

// DecodePayload decodes the payload of a command from its form in a frame. It fails on members that this build does not
// know.
func DecodePayload(b []byte, to decide.Payload) error {
	return json.Unmarshal(b, to, json.RejectUnknownMembers(true))
}

// EncodePayload returns the form of a payload in a frame, from which DecodePayload restores an equal payload.
func EncodePayload(payload any) ([]byte, error) {
	return json.Marshal(payload, json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true))
}

// skip answers a command of a batch that must not be decided, because one before it is not.
func (s *session) skip(m *message) error {
	c := &incoming{message: *m}
	if err := s.receive(m, c); err != nil {
		return err
	}
	s.answer(c, answer{kind: notAccepted, reason: "a command before it in its batch was not decided"})
	s.notify()
	return nil
}

// enqueue has the owner queue the commands of a batch, which it MUST NOT decide after their deadline.
func (s *session) enqueue(batch []*incoming) {
	commands := make([]decide.Command, len(batch))
	for i, c := range batch {
		commands[i] = c.command
	}
	withdraw := s.server.cfg.Owners.Enqueue(batch[0].trace.In(s.ctx), s.hello.shard.Journal, submit.Batch{
		Commands: commands, Until: max(1, batch[0].deadline.time()),
		Reply:   func(i int, o submit.Outcome) { s.answer(batch[i], answerTo(o.Result, o.Err)) },
		Replied: s.notify,
	})
	s.mu.Lock()
	ended := !s.ended.IsZero()
	b := &enqueued{withdraw}
	for _, c := range batch {
		c.batch = b
	}
	s.mu.Unlock()
	if ended {
		withdraw()
	}
}

// answerTo returns the answer for the outcome of a command.
func answerTo(result submit.Result, err error) answer {
	var (
		refusal   *submit.RefusedError
		busy      *submit.NotAcceptedError
		doubtful  *submit.OutcomeUnknownError
		elsewhere *submit.ElsewhereError
	)
	switch {
	case err == nil:
		return recordAnswer(result)
	case errors.As(err, &refusal):
		return answer{kind: refused, sequence: refusal.AsOf.Sequence, refusal: refusal.Refusal}
	case errors.As(err, &elsewhere), errors.As(err, &busy) && busy.Unowned:
		return answer{kind: notOwner, reason: err.Error()}
	case busy != nil:
		return answer{kind: notAccepted, retryAfter: busy.RetryAfter, reason: busy.Reason}
	case errors.As(err, &doubtful):
		return answer{kind: unknown}
	}
	return answer{kind: failed, reason: err.Error()}
}

// recordAnswer returns the answer for a command that is in a record.
func recordAnswer(r submit.Result) answer {
	a := answer{kind: applied, sequence: r.Position.Sequence}
	if r.Repeated {
		a.kind = repeated
	}
	if r.Entry == nil {
		return a
	}
	a.offset, a.journal, a.value = r.Entry.Position.Offset, r.Entry.Journal, r.Entry.Value
	if a.value == nil {
		value, err := record.Encode(nil, r.Entry.Record)
		if err != nil {
			return answer{kind: failed, reason: err.Error()}
		}
		a.value = value
	}
	return a
}

// answer queues the answer to a command. The caller must call notify afterwards.
func (s *session) answer(c *incoming, a answer) {
	a.number = c.number
	s.mu.Lock()
	delete(s.open, c.number)
	s.bytes -= len(c.payload)
	s.answers = append(s.answers, a)
	s.mu.Unlock()
}

// notify wakes the writer.
func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// leave asks the node to end the stream once its commands are answered. If it does not, the stream ends in silence.
func (s *session) leave() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.notify()
}

// end ends the stream. It returns the highest number received; no command is received afterwards.
func (s *session) end() (last uint64) {
	s.mu.Lock()
	if !s.ended.IsZero() {
		defer s.mu.Unlock()
		return s.last
	}
	s.ended = time.Now()
	last = s.last
	batches := make(map[*enqueued]struct{})
	for _, c := range s.open {
		if c.batch != nil {
			batches[c.batch] = struct{}{}
		}
	}
	s.mu.Unlock()
	withdrawAll(batches)
	s.notify() // the writer ends the reading
	return last
}

func (s *session) endedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// writeAll writes answers and pongs until the stream ends or cannot be written to.
func (s *session) writeAll(ctx context.Context) {
	left := false // the node was asked to end the stream
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		s.gather(last)
		s.mu.Lock()
		ready, pong, leaving, ended := s.answers, s.pong, s.leaving, !s.ended.IsZero()
		s.answers, s.pong = nil, false
		s.mu.Unlock()
		if ended {
			return
		}
		err := s.writeAnswers(ready)
		last = time.Now()
		if pong && err == nil {
			now := s.server.now()
			if !left {
				s.extend(silence)
			}
			err = s.write(kindPong, visitStamp(&now))
		}
		if leaving && !left && err == nil {
			left = true
			err = s.write(kindLeaving, func(*pack.Coder) {})
		}
		if err != nil {
			return
		}
	}
}

// gather lets more commands be answered before the next frame is written. last is when the last one was.
func (s *session) gather(last time.Time) {
	s.mu.Lock()
	busy := len(s.open) > 0 && s.ended.IsZero()
	s.mu.Unlock()
	pause(busy, last, gatherTime)
}

// writeAnswers writes answers in frames.
func (s *session) writeAnswers(all []answer) error {
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && (n == 0 || size+len(all[n].value) < frameSize) {
			size += len(all[n].value)
			n++
		}
		frame := answers{now: s.server.now(), all: all[:n]}
		if err := s.write(kindAnswer, frame.visit); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}
