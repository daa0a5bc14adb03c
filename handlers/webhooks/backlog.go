package webhooks

import (
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/heap"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// maxNotices is the number of open deliveries with a notice in memory. The notices of others are read from the rows.
const maxNotices = 100_000

// backlog holds the open deliveries according to the fold of the log. It listens to the fold, so a delivery appears
// when its record is folded and disappears when its last receipt is folded, regardless of the rows' lag.
//
// Its lock is taken while the fold's lock is held, so code that holds it MUST NOT call the fold.
type backlog struct {
	mu        sync.Mutex
	endpoints map[scalar.ID]*endpoint
	notices   int   // number of notices in memory
	at        int64 // sequence of the last record
	clock     *logclock.Clock
}

// endpoint is the backlog of one webhook.
type endpoint struct {
	disabled bool
	open     map[scalar.ID]*delivery
	queues   map[queueKey]*ownerQueue
	ready    []*ownerQueue // queues with due deliveries that no worker has taken, each once
	retries  retries
	changed  chan struct{} // has one element if there may be more to take
}

// queueKey identifies the queue of a delivery. Deliveries about one owner share a queue; a delivery about no owner has a
// separate one.
type queueKey struct {
	owner.Ref
	id scalar.ID // delivery ID if there is no owner
}

// ownerQueue holds the open deliveries about one owner. Due deliveries are sent one after the other in the order of the
// log.
type ownerQueue struct {
	queueKey
	endpoint *endpoint
	due      []*delivery
	taken    bool // a worker is attempting a delivery or waits for its record
	ready    bool // the queue is in the endpoint's ready list
	open     int  // number of open deliveries, due or not
}

// delivery is an open delivery. After creation, only standing changes.
type delivery struct {
	id       scalar.ID
	noticeID scalar.ID
	notice   *reported   // nil: read it from the rows
	attempts int         // number of attempts so far
	next     scalar.Time // time of the retry, as in the record; zero if the delivery is due
	made     onboarding.EventPosition
	queue    *ownerQueue
	standing standing
	n        int // index in the heap of retries
}

// reported is a notice with deliveries to several receivers.
type reported struct {
	*onboarding.Notice
	mu sync.Mutex
	// sent is the encoded body, which all receivers share. The pointer is weak, because decrypted data must not stay
	// in memory for as long as a receiver fails.
	sent weak.Pointer[[]byte]
}

// body returns the encoded notice and calls make if it is not in memory.
func (t *reported) body(make func(*onboarding.Notice) ([]byte, error)) ([]byte, error) {
	t.mu.Lock()
	b := t.sent.Value()
	t.mu.Unlock()
	if b != nil {
		return *b, nil
	}
	made, err := make(t.Notice) // concurrent callers may encode it twice, with the same result
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.sent = weak.Make(&made)
	t.mu.Unlock()
	return made, nil
}

// standing is the current location of a delivery.
type standing byte

const (
	isDue     standing = iota // in the queue's list
	isWaiting                 // in the heap of retries
	isTaken                   // with a worker, or its record is not folded yet
)

// newBacklog returns a backlog for the clock of a node.
func newBacklog(node func() time.Time) *backlog {
	return &backlog{endpoints: make(map[scalar.ID]*endpoint), clock: logclock.New(node)}
}

// start loads the open deliveries of a state. The caller holds the fold's lock.
func (b *backlog) start(s decide.State, at record.Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := s.(*onboarding.State)
	b.at = at.Sequence
	b.clock.Start(s)
	for _, v := range state.OpenDeliveries() {
		b.add(v, nil)
		b.judge(state, v.WebhookID)
	}
}

// follow applies a record. s is the state after it. The caller holds the fold's lock.
func (b *backlog) follow(e record.Entry, s decide.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := s.(*onboarding.State)
	var last *reported // in a record, a notice precedes its deliveries
	for _, e := range e.Record.Events {
		switch e := e.(type) {
		case *onboarding.NoticeGiven:
			last = &reported{Notice: &e.Notice}
		case *onboarding.DeliveryCreated:
			b.look(state, e.ID, e.WebhookID, last)
			b.judge(state, e.WebhookID)
		case *onboarding.DeliveryAttempted:
			b.look(state, e.ID, e.WebhookID, nil)
		case *onboarding.DeliveryReplayed:
			b.look(state, e.ID, e.WebhookID, nil)
			b.judge(state, e.WebhookID)
		case *onboarding.WebhookDisabled:
			b.judge(state, e.ID)
		case *onboarding.WebhookEnabled:
			b.judge(state, e.ID)
		case *onboarding.WebhookDeleted:
			b.lookAll(state, e.ID)
		case *onboarding.OwnerErased:
			b.lookAbout(state, e.Ref)
		}
	}
	b.at = e.Position.Sequence
	b.clock.Reach(&e)
}

// look updates a delivery to the state.
func (b *backlog) look(s *onboarding.State, id, of scalar.ID, n *reported) {
	if h := b.endpoints[of]; h != nil && h.open[id] != nil {
		b.remove(h.open[id])
	}
	if v, known := s.Delivery(id); known && v.Status.IsOpen() {
		if n != nil && n.ID != v.NoticeID {
			n = nil
		}
		b.add(v, n)
	}
}

func (b *backlog) lookAll(s *onboarding.State, of scalar.ID) {
	if h := b.endpoints[of]; h != nil {
		for id := range h.open {
			b.look(s, id, of, nil)
		}
	}
}

// lookAbout updates the open deliveries about an owner to the state.
func (b *backlog) lookAbout(s *onboarding.State, ref owner.Ref) {
	for of, h := range b.endpoints {
		if h.queues[queueKey{Ref: ref}] == nil {
			continue
		}
		for id, d := range h.open {
			if d.queue.Ref == ref {
				b.look(s, id, of, nil)
			}
		}
	}
}

// judge updates whether a webhook is disabled.
func (b *backlog) judge(s *onboarding.State, of scalar.ID) {
	if h := b.endpoints[of]; h != nil {
		w, there := s.Webhook(of)
		h.disabled = there && w.Disabled != 0
		h.signal()
	}
}

// of returns the backlog of a webhook. The caller holds the lock.
func (b *backlog) of(id scalar.ID) *endpoint {
	h := b.endpoints[id]
	if h == nil {
		h = &endpoint{open: make(map[scalar.ID]*delivery), queues: make(map[queueKey]*ownerQueue), changed: make(chan struct{}, 1)}
		b.endpoints[id] = h
	}
	return h
}

func (b *backlog) add(v *onboarding.Delivery, n *reported) {
	h, at := b.of(v.WebhookID), queueKey{Ref: v.Ref}
	if v.Ref == (owner.Ref{}) {
		at.id = v.ID
	}
	l := h.queues[at]
	if l == nil {
		l = &ownerQueue{queueKey: at, endpoint: h}
		h.queues[at] = l
	}
	d := &delivery{id: v.ID, noticeID: v.NoticeID, attempts: v.Attempts, next: v.NextAttempt, made: v.Made, queue: l}
	if n != nil && b.notices < maxNotices {
		d.notice = n
		b.notices++
	}
	h.open[d.id] = d
	l.open++
	if d.next != 0 {
		d.standing = isWaiting
		h.retries.Push(d)
		return
	}
	l.line(d)
	l.offer()
	h.signal()
}

// remove removes a delivery. If a worker has taken it, the worker still has to call done.
func (b *backlog) remove(d *delivery) {
	l := d.queue
	switch d.standing {
	case isDue:
		l.due = slices.DeleteFunc(l.due, func(o *delivery) bool { return o == d })
	case isWaiting:
		l.endpoint.retries.Remove(d.n)
	case isTaken:
	}
	if d.notice != nil {
		b.notices--
	}
	delete(l.endpoint.open, d.id)
	l.open--
	l.leave()
}

// line inserts a delivery into the queue's due list, in the order of the log.
func (l *ownerQueue) line(d *delivery) {
	d.standing = isDue
	n, _ := slices.BinarySearchFunc(l.due, d.made, func(o *delivery, made onboarding.EventPosition) int { return o.made.Compare(made) })
	l.due = slices.Insert(l.due, n, d)
}

// offer adds the queue to the ready list if it has due deliveries and no worker.
func (l *ownerQueue) offer() {
	if len(l.due) > 0 && !l.taken && !l.ready {
		l.ready = true
		l.endpoint.ready = append(l.endpoint.ready, l)
	}
}

// leave removes an empty queue. It keeps a queue with a worker, because the owner's next delivery must wait for that
// worker.
func (l *ownerQueue) leave() {
	if l.open == 0 && !l.taken {
		delete(l.endpoint.queues, l.queueKey)
	}
}

func (h *endpoint) signal() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// take returns the next due delivery of a webhook. The caller owns the delivery's queue until it calls done. If no
// delivery is due, take returns nil and the sequence of the record at which that was true. next is the time of the
// next retry by this node's clock, or zero.
func (b *backlog) take(h *endpoint) (d *delivery, at int64, next scalar.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for d, exists := h.retries.First(); exists; d, exists = h.retries.First() {
		if d.next > now {
			next = b.clock.Node(d.next)
			break
		}
		h.retries.Remove(d.n)
		d.queue.line(d)
		d.queue.offer()
	}
	for !h.disabled && len(h.ready) > 0 {
		l := h.ready[0]
		h.ready, l.ready = h.ready[1:], false
		if len(l.due) == 0 { // its deliveries were removed
			continue
		}
		d, l.due, l.taken = l.due[0], l.due[1:], true
		d.standing = isTaken
		return d, b.at, next
	}
	return nil, b.at, next
}

// done releases the queue of a delivery. again means that the attempt was not recorded and must be repeated.
func (b *backlog) done(d *delivery, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := d.queue
	l.taken = false
	// The fold may have applied the attempt's record before the response arrived. Then the delivery has already been
	// replaced.
	if again && l.endpoint.open[d.id] == d {
		l.line(d)
	}
	l.offer()
	l.leave()
	l.endpoint.signal()
}

// registration returns the backlog of a webhook.
func (b *backlog) registration(id scalar.ID) *endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(id)
}

// retries is a heap of deliveries by the time of their retry.
type retries = heap.Heap[*delivery, nextRetry]

type nextRetry struct{}

// Before implements heap.Order.
func (nextRetry) Before(a, b *delivery) bool { return a.next < b.next }

// Moved implements heap.Order.
func (nextRetry) Moved(d *delivery, index int) { d.n = index }
