package live

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log reads a journal again, for subscriptions that resume.
type Log interface {
	// Read passes the records after a position, in order, until each returns false or the context ends.
	Read(ctx context.Context, after record.Position, each func(record.Entry) bool) error
}

// NewLog returns the Log of a journal partition.
func NewLog(client *journal.Client, rules decide.Rules, partition int32) Log {
	return journalLog{client, rules, partition}
}

type journalLog struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32
}

// Read implements Log.
func (l journalLog) Read(ctx context.Context, after record.Position, each func(record.Entry) bool) error {
	r := journal.NewReader(l.client, l.rules, l.partition, after)
	defer r.Close()
	for {
		entries, err := r.Poll(ctx)
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
	// nearTip is how many records a resuming subscription may be behind when it joins the live messages: those are
	// buffered meanwhile.
	nearTip = 256
	// maxResuming is how many subscriptions of a node read the log at once, and maxResumingOfUser how many of one user
	// among them, whatever the number of connections; others wait for their turn.
	maxResuming       = 16
	maxResumingOfUser = 4
	// turnWait is how long one that reads the log waits for its client before it gives its turn back.
	turnWait = time.Second
	// aheadWait is how long a position that this node has not reached yet is waited for.
	aheadWait = 2 * time.Second
)

// catchUp is the state of a subscription that is served from the log. The hub's lock guards it.
type catchUp struct {
	after     int64 // the record that the client had last
	part      int   // how many of the following record's messages it had
	buffering bool  // live messages are kept in buffered; before that they are ignored, since they will be read from the log
	buffered  []*message
}

// had reports whether the client had the message at a position of a record.
func (c *catchUp) had(sequence int64, p draftPosition) bool {
	return sequence <= c.after || sequence == c.after+1 && p.nth <= c.part
}

// buffer keeps a live message until the log before it was read. When there are more than may be kept, none is: the log is
// behind, not the client, so it is read on to where they came from.
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

// parsePosition reads a position as messages carry it: "trading/0@123" after a whole record, "trading/0@123.2" after
// the second of its messages.
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

// resume makes a subscription that begins with what the client missed.
func (h *Hub) resume(s *session, r *request, c *channel, topic, symbol string) *refusal {
	from, refused := h.parsePosition(r.resumeFrom)
	if refused != nil {
		return refused
	}
	last := from.after
	if from.part > 0 {
		last++
	}
	user := s.address // of who reads what is public
	if p := s.principal(); p != nil {
		user = p.Broker + "/" + p.Username
	} else if c.private { // nobody waits for what they may not have
		return refuse(AuthenticationRequired, "the channel needs an authenticated connection")
	}
	ctx, cancel := context.WithTimeout(s.ctx, aheadWait)
	err := h.follower.Wait(ctx, last)
	cancel()
	switch {
	case s.ctx.Err() != nil:
		return refuse(InvalidMessage, "the connection is closed")
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(InvalidMessage, "resume_from is beyond the end of the log")
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
		h.serving.Go(func() { h.catchUp(sub, user) }) // the session's handler is counted, so the count is not zero
	}
	return refused
}

// catchUp serves a subscription from the log until it has caught up, and then lets the live messages through. It waits
// for a client that reads slowly without keeping others from reading the log, and ends one that reads too slowly.
func (h *Hub) catchUp(sub *subscription, user string) {
	ctx := sub.session.ctx
	from := h.anchors.Below(sub.catching.after + 1)
	for {
		done, ok := h.turns.take(ctx, user) // each reads the log for itself
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

// tooSlow ends the session of a subscription that has waited too long for its client, unless either has ended.
func (h *Hub) tooSlow(sub *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds(sub) {
		sub.session.slow()
	}
}

// readFrom serves a subscription from the log until it is done with that, and full is false, or its client does not
// read what there is. from moves on.
func (h *Hub) readFrom(ctx context.Context, sub *subscription, from *record.Position) (full bool) {
	after := sub.catching.after
	for {
		var target int64
		var joining bool
		// Target and buffering are set together, while no record is applied: what comes after target is live, and buffered
		// if this round may be the last; what comes up to it is read from the log. Nothing falls between, nothing is both.
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
			if err != nil {
				h.lost(sub, err)
				return false
			}
		}
		h.mu.Lock()
		if full { // the turn is given back; until the next one live messages are read from the log again, not kept
			sub.catching.buffering, sub.catching.buffered = false, nil
			h.mu.Unlock()
			return true
		}
		over := !h.holds(sub) || sub.session.isEnded()
		if joining = joining && sub.catching.buffering; !over && joining && from.Sequence >= target { // nothing was dropped
			// Under the hub's lock onRecord adds nothing to the buffer, and the next message finds catching gone: it goes
			// behind what is sent here.
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

// serve sends what a record of the log has for a subscription. It reports whether to go on.
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

// holds reports whether a subscription still stands. It is called under the hub's lock.
func (h *Hub) holds(sub *subscription) bool {
	return sub.session.subscriptions[sub.topic] == sub
}

func (h *Hub) lost(sub *subscription, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sub.session.ctx.Err() != nil || !h.holds(sub) {
		return
	}
	h.logger.Error("the journal can't be read for a subscription that resumes", "journal", h.journal, "error", err)
	h.expel(sub, sub.channel.failed, "the log behind the channel can't be read; subscribe again to recover")
}
