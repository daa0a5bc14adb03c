package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log rereads a journal for resumed subscriptions.
type Log interface {
	// Read calls each with the records after a position, in order, until each returns false or the context ends.
	Read(ctx context.Context, after record.Position, each func(record.Entry) bool) error
}

// NewLog returns the Log of a journal partition. It serves only records that are proven by the marks of the hub's follower, or all if
// marks is nil.
func NewLog(client *journal.Client, rules decide.Rules, partition int32, marks *follow.Marks) Log {
	return journalLog{client, rules, partition, marks}
}

type journalLog struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32
	marks     *follow.Marks
}

// Read implements Log.
func (l journalLog) Read(ctx context.Context, after record.Position, each func(record.Entry) bool) error {
	r := journal.NewReader(l.client, l.rules, l.partition, after)
	defer r.Close()
	poll := r.Poll
	if l.marks != nil {
		held := l.marks.Hold()
		poll = func(ctx context.Context) ([]record.Entry, error) {
			return held.Next(ctx, func(ctx context.Context, _ int64) ([]record.Entry, error) { return r.Poll(ctx) })
		}
	}
	for {
		entries, err := poll(ctx)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !each(e) {
				return nil
			}
		}
	}
}

const (
	// nearTip is the maximum number of records that a resumed subscription may be behind when it starts to buffer
	// live messages.
	nearTip = 256
	// maxResuming is the maximum number of subscriptions of a node that read the log concurrently, and
	// maxResumingOfUser that of one user over all connections, or without a token of one network. Others wait.
	maxResuming       = 16
	maxResumingOfUser = 4
	// turnWait is how long a subscription waits for its client before it lets others read the log.
	turnWait = time.Second
	// aheadWait is how long a resume waits for a position that this node has not reached.
	aheadWait = 2 * time.Second
)

// catchUp is the state of a subscription that reads missed messages from the log. The hub's lock guards it.
type catchUp struct {
	after     int64 // the last record that the client received completely
	part      int   // number of messages that the client received of the next record
	buffering bool  // live messages are buffered; otherwise they are ignored, because they will be read from the log
	buffered  []*message
}

// had reports whether the client has received the message at a position in a record.
func (c *catchUp) had(sequence int64, p draftPosition) bool {
	return sequence <= c.after || sequence == c.after+1 && p.nth <= c.part
}

// buffer stores a live message until the earlier part of the log has been read. If the buffer is full, it is
// discarded and buffering stops: the log is being read too slowly, which is not the client's problem, so the messages
// will be read from the log.
func (c *catchUp) buffer(m *message, most int) {
	if !c.buffering {
		return
	}
	if len(c.buffered) >= most {
		c.buffering, c.buffered = false, nil
		return
	}
	c.buffered = append(c.buffered, m)
}

// parsePosition parses a position of a message: "trading/0@123" after a complete record, "trading/0@123.2" after the
// second message of the record.
func (h *Hub) parsePosition(text string) (*catchUp, *refusal) {
	whole, part, parted := strings.Cut(text, ".")
	at, err := record.ParseLogPosition(whole)
	c := &catchUp{after: at.Sequence}
	if err == nil && at.Sequence < 0 {
		return nil, refuse(InvalidMessage, "resume_from is not a position like trading/0@123")
	}
	if err == nil && parted {
		c.part, err = strconv.Atoi(part)
		c.after--
	}
	if err != nil || parted && (c.part < 1 || strconv.Itoa(c.part) != part || c.after < -1) {
		return nil, refuse(InvalidMessage, "resume_from is not a position like trading/0@123")
	}
	if at.Journal != h.journal || at.Partition != h.partition {
		return nil, refuse(InvalidMessage, "resume_from is a position of another log")
	}
	return c, nil
}

// errBeyondEnd says that the log has no such position yet.
var errBeyondEnd = errors.New("beyond the end of the log")

// await waits until the follower has read a record. After aheadWait it asks the brokers for the end of the log: another
// node may have named the position, and this one may be behind.
func (h *Hub) await(ctx context.Context, sequence int64) error {
	reading, cancel := context.WithTimeout(ctx, aheadWait)
	defer cancel()
	err := h.follower.Wait(reading, sequence)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, aheadWait)
	defer cancel()
	if err := h.follower.WaitTip(asking); err != nil {
		return err
	}
	if h.follower.Position().Sequence < sequence {
		return errBeyondEnd
	}
	return nil
}

// resume creates a subscription that begins with the messages that the client missed.
func (h *Hub) resume(s *session, r *request, c *channel, topic, symbol string) *refusal {
	from, refused := h.parsePosition(r.resumeFrom)
	if refused != nil {
		return refused
	}
	last := from.after
	if from.part > 0 {
		last++
	}
	p := s.principal()
	if p == nil && c.private { // do not let a client wait that may not subscribe
		return refuse(AuthenticationRequired, "the channel needs an authenticated connection")
	}
	err := h.await(s.ctx, last)
	switch {
	case s.ctx.Err() != nil:
		return refuse(InvalidMessage, "the connection is closed")
	case errors.Is(err, errBeyondEnd):
		return refuse(InvalidMessage, "resume_from is beyond the end of the log")
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(c.failed, "this node has not read the log as far as resume_from")
	case err != nil:
		return refuse(c.failed, "the log behind the channel can't be read")
	}
	var sub *subscription
	h.follower.View(func(state decide.State, at record.Position) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.log == nil || at.Sequence-from.after > h.limits.ResumeRecords {
			refused = refuse(ResumeTooOld, "resume_from is more than %d records back", h.limits.ResumeRecords)
			return
		}
		if sub, refused = h.enter(s, r, c, topic, symbol, symbol, state.(*trading.State)); refused != nil {
			return
		}
		sub.catching = from
		s.send(encode(ack{"subscribed", topic, r.id}))
	})
	if refused == nil {
		h.serving.Go(func() { h.catchUp(sub, readerOf(p, s.address)) }) // Add is safe: the counter includes the session's handler
	}
	return refused
}

// readerOf names the clients that share the slots of one user: those of a user, or of a network without a token.
func readerOf(p *access.Principal, address string) string {
	if p == nil {
		return access.NetworkOf(address).String()
	}
	return p.Broker + "/" + p.Username
}

// catchUp serves a subscription from the log until it has caught up, and then connects it to the live messages. While
// it waits for a slow client, others can read the log. It ends the session if the client is too slow.
func (h *Hub) catchUp(sub *subscription, user string) {
	ctx := sub.session.ctx
	from := h.streams.anchors.Below(sub.catching.after + 1)
	for {
		done, ok := h.replaySlots.Take(ctx, user) // each subscription reads the log separately
		if !ok {
			return
		}
		full := h.readFrom(ctx, sub, &from)
		done()
		if !full {
			return
		}
		if !sub.session.waitForRoom(h.limits.ResumeWait - turnWait) {
			h.tooSlow(sub)
			return
		}
	}
}

// tooSlow ends the session of a subscription that waited too long for the client, unless one of them has already
// ended.
func (h *Hub) tooSlow(sub *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds(sub) {
		sub.session.slow()
	}
}

// readFrom serves a subscription from the log and advances from. It returns true if it stopped because the client
// does not read, and false if it is finished.
func (h *Hub) readFrom(ctx context.Context, sub *subscription, from *record.Position) (full bool) {
	after := sub.catching.after
	for {
		var target int64
		var joining bool
		// Set target and buffering together, while no record is applied. Messages after target are live, and buffered
		// if this may be the last round; those up to target are read from the log. So none is lost or repeated.
		h.follower.View(func(_ decide.State, at record.Position) {
			h.mu.Lock()
			defer h.mu.Unlock()
			target = at.Sequence
			joining = target-max(from.Sequence, after) <= nearTip
			sub.catching.buffering = joining
		})
		if from.Sequence < target {
			err := h.log.Read(ctx, *from, func(e record.Entry) bool {
				if e.Position.Sequence > after && !sub.session.waitForRoom(turnWait) {
					full = !sub.session.isEnded()
					return false
				}
				*from = e.Position
				return h.serve(sub, e) && e.Position.Sequence < target
			})
			var trimmed *record.TrimmedError
			switch {
			case errors.As(err, &trimmed) && from.Sequence < trimmed.Base.Sequence-1 && trimmed.Base.Sequence-1 <= after:
				*from = trimmed.Base.Before() // the anchor is gone, and the records that the client missed are not
				continue
			case err != nil:
				h.lost(sub, err)
				return false
			}
		}
		h.mu.Lock()
		if full { // other subscriptions may read the log; until the next slot, live messages are not buffered
			sub.catching.buffering, sub.catching.buffered = false, nil
			h.mu.Unlock()
			return true
		}
		over := !h.holds(sub) || sub.session.isEnded()
		if joining = joining && sub.catching.buffering; !over && joining && from.Sequence >= target { // nothing was discarded
			// While the hub's lock is held, onRecord adds nothing to the buffer. The next message finds catching nil
			// and is queued after those sent here.
			buffered := sub.catching.buffered
			sub.catching = nil
			for _, m := range buffered {
				h.sendTo(sub, m)
			}
			over = true
		}
		h.mu.Unlock()
		if over {
			return false
		}
	}
}

// serve sends a record's messages for a subscription and reports whether to continue.
func (h *Hub) serve(sub *subscription, e record.Entry) bool {
	c := sub.catching
	if e.Position.Sequence <= c.after {
		return true
	}
	drafts := translate(e, func(want *channel) bool { return want == sub.channel })
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.holds(sub) {
		return false
	}
	for i, position := range positions(h.logPosition(e.Position.Sequence), drafts) {
		if c.had(e.Position.Sequence, position) || !sub.key.matches(&drafts[i]) {
			continue
		}
		m := &message{plain: encode(drafts[i].value), position: position.text}
		if sub.session.deliver(m.frame(sub.positions)) {
			h.metrics.queued.Add(1)
		}
	}
	return true
}

// holds reports whether a subscription still exists. The caller holds the hub's lock.
func (h *Hub) holds(sub *subscription) bool {
	return sub.session.subscriptions[sub.topic] == sub
}

func (h *Hub) lost(sub *subscription, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sub.session.ctx.Err() != nil || !h.holds(sub) {
		return
	}
	var trimmed *record.TrimmedError
	if errors.As(err, &trimmed) {
		h.expel(sub, ResumeTooOld, fmt.Sprintf("resume_from lies before record %d, with which the log begins; subscribe again without it", trimmed.Base.Sequence))
		return
	}
	h.logger.Error("the journal can't be read for a subscription that resumes", "journal", h.journal, "error", err)
	h.expel(sub, sub.channel.failed, "the log behind the channel can't be read; subscribe again to recover")
}
