package webhooks

import (
	"container/heap"
	"slices"
	"sync"
	"weak"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// maxNotices is how many open deliveries have their notice in memory. Those of the others are read from the rows.
const maxNotices = 100_000

// backlog is what is open, as the fold of the log has it at any moment: it listens to the fold. So a delivery is there once its
// record is folded and gone once its last receipt is, however far the rows are behind.
//
// Its lock is taken under the fold's, so nobody who holds it may ask the fold.
type backlog struct {
	mu      sync.Mutex
	hooks   map[scalar.ID]*hook
	notices int   // in memory
	at      int64 // the sequence of the last record
}

// hook is the backlog of a registration.
type hook struct {
	disabled bool
	open     map[scalar.ID]*delivery
	lanes    map[place]*lane
	ready    []*lane // that have something due and nobody at work, each once
	retries  retries
	changed  chan struct{} // holds something once there may be more to take
}

// place is where a delivery lines up: behind what was told of the same owner. What is about no owner waits for nothing.
type place struct {
	owner.Ref
	id scalar.ID // of what is about no owner
}

// lane is what is open about one owner. Of what is due one goes out after the other, in the order of the log.
type lane struct {
	place
	hook  *hook
	due   []*delivery
	taken bool // somebody tries one, or waits for its record
	ready bool // it is in its hook's list
	open  int  // all that is open, due or not
}

// delivery is one that is open. Once it is made only where it stands changes.
type delivery struct {
	id       scalar.ID
	noticeID scalar.ID
	notice   *told       // nil: it is to be read from the rows
	attempts int         // so far
	next     scalar.Time // when it is retried; zero for one that waits for nothing
	made     onboarding.Place
	lane     *lane
	standing standing
	n        int // its number in the heap of retries
}

// told is a notice that is on its way to several receivers.
type told struct {
	*onboarding.Notice
	mu sync.Mutex
	// sent is the body, which is the same for all of them, until the collector comes by: what is sealed elsewhere must not stay in
	// memory in clear for as long as some receiver may be dead.
	sent weak.Pointer[[]byte]
}

// body returns the notice's body, from make if nobody has it any more.
func (t *told) body(make func(*onboarding.Notice) ([]byte, error)) ([]byte, error) {
	t.mu.Lock()
	b := t.sent.Value()
	t.mu.Unlock()
	if b != nil {
		return *b, nil
	}
	made, err := make(t.Notice) // twice the same, if two are here at once
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.sent = weak.Make(&made)
	t.mu.Unlock()
	return made, nil
}

// standing is where a delivery of the backlog is to be found.
type standing byte

const (
	isDue     standing = iota // in its lane
	isWaiting                 // among its hook's retries
	isTaken                   // with who tries it, or its record is on its way to the fold
)

func newBacklog() *backlog { return &backlog{hooks: make(map[scalar.ID]*hook)} }

// start takes over what is open. It is called under the fold's lock.
func (b *backlog) start(s decide.State, at record.Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := s.(*onboarding.State)
	b.at = at.Sequence
	for _, v := range state.OpenDeliveries() {
		b.add(v, nil)
		b.judge(state, v.WebhookID)
	}
}

// follow takes note of a record. It is called under the fold's lock, with the state after it.
func (b *backlog) follow(e record.Entry, s decide.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := s.(*onboarding.State)
	var last *told // a record has a notice before the deliveries of it
	for _, e := range e.Record.Events {
		switch e := e.(type) {
		case *onboarding.NoticeGiven:
			last = &told{Notice: &e.Notice}
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
}

// look brings a delivery to where the state has it.
func (b *backlog) look(s *onboarding.State, id, of scalar.ID, n *told) {
	if h := b.hooks[of]; h != nil && h.open[id] != nil {
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
	if h := b.hooks[of]; h != nil {
		for id := range h.open {
			b.look(s, id, of, nil)
		}
	}
}

// lookAbout brings what is open about an owner to where the state has it.
func (b *backlog) lookAbout(s *onboarding.State, ref owner.Ref) {
	for of, h := range b.hooks {
		if h.lanes[place{Ref: ref}] == nil {
			continue
		}
		for id, d := range h.open {
			if d.lane.Ref == ref {
				b.look(s, id, of, nil)
			}
		}
	}
}

// judge notes whether anything of a registration is tried at all.
func (b *backlog) judge(s *onboarding.State, of scalar.ID) {
	if h := b.hooks[of]; h != nil {
		w, there := s.Webhook(of)
		h.disabled = there && w.Disabled != 0
		h.signal()
	}
}

// of returns the backlog of a registration.
func (b *backlog) of(id scalar.ID) *hook {
	h := b.hooks[id]
	if h == nil {
		h = &hook{open: make(map[scalar.ID]*delivery), lanes: make(map[place]*lane), changed: make(chan struct{}, 1)}
		b.hooks[id] = h
	}
	return h
}

func (b *backlog) add(v *onboarding.Delivery, n *told) {
	h, at := b.of(v.WebhookID), place{Ref: v.Ref}
	if v.Ref == (owner.Ref{}) {
		at.id = v.ID
	}
	l := h.lanes[at]
	if l == nil {
		l = &lane{place: at, hook: h}
		h.lanes[at] = l
	}
	d := &delivery{id: v.ID, noticeID: v.NoticeID, attempts: v.Attempts, next: v.NextAttempt, made: v.Made, lane: l}
	if n != nil && b.notices < maxNotices {
		d.notice = n
		b.notices++
	}
	h.open[d.id] = d
	l.open++
	if d.next != 0 {
		d.standing = isWaiting
		heap.Push(&h.retries, d)
		return
	}
	l.line(d)
	l.offer()
	h.signal()
}

// remove takes a delivery out of the backlog. Who has taken it gives its lane back all the same.
func (b *backlog) remove(d *delivery) {
	l := d.lane
	switch d.standing {
	case isDue:
		l.due = slices.DeleteFunc(l.due, func(o *delivery) bool { return o == d })
	case isWaiting:
		heap.Remove(&l.hook.retries, d.n)
	case isTaken:
	}
	if d.notice != nil {
		b.notices--
	}
	delete(l.hook.open, d.id)
	l.open--
	l.leave()
}

// line has a delivery wait in its lane for its turn.
func (l *lane) line(d *delivery) {
	d.standing = isDue
	n, _ := slices.BinarySearchFunc(l.due, d.made, func(o *delivery, made onboarding.Place) int { return o.made.Compare(made) })
	l.due = slices.Insert(l.due, n, d)
}

// offer has somebody take the next one of a lane, if there is one and nobody has it.
func (l *lane) offer() {
	if len(l.due) > 0 && !l.taken && !l.ready {
		l.ready = true
		l.hook.ready = append(l.hook.ready, l)
	}
}

// leave ends a lane that nothing is in. While somebody is at work for it, it stays: what comes next about the owner waits for
// that.
func (l *lane) leave() {
	if l.open == 0 && !l.taken {
		delete(l.hook.lanes, l.place)
	}
}

func (h *hook) signal() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// take hands out the next delivery that is due of a registration, whose lane is its taker's until done; nil if none is. Then
// the sequence is that of the record up to which that is so, and next when one is retried, zero for none.
func (b *backlog) take(h *hook, now scalar.Time) (d *delivery, at int64, next scalar.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(h.retries) > 0 && h.retries[0].next <= now {
		d := heap.Pop(&h.retries).(*delivery)
		d.lane.line(d)
		d.lane.offer()
	}
	if len(h.retries) > 0 {
		next = h.retries[0].next
	}
	for !h.disabled && len(h.ready) > 0 {
		l := h.ready[0]
		h.ready, l.ready = h.ready[1:], false
		if len(l.due) == 0 { // what was in it is gone since
			continue
		}
		d, l.due, l.taken = l.due[0], l.due[1:], true
		d.standing = isTaken
		return d, b.at, next
	}
	return nil, b.at, next
}

// done gives the lane of a delivery back. Where its attempt is not recorded and won't be, it is to be made again.
func (b *backlog) done(d *delivery, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := d.lane
	l.taken = false
	// The record of the attempt may have come by the fold before its answer did: then the delivery is in its new place already.
	if again && l.hook.open[d.id] == d {
		l.line(d)
	}
	l.offer()
	l.leave()
	l.hook.signal()
}

// registration returns the backlog of a registration.
func (b *backlog) registration(id scalar.ID) *hook {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(id)
}

// retries is a heap of deliveries by when they are retried.
type retries []*delivery

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].next < r[j].next }
func (r retries) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].n, r[j].n = i, j
}

// Push implements heap.Interface.
func (r *retries) Push(d any) {
	d.(*delivery).n = len(*r)
	*r = append(*r, d.(*delivery))
}

// Pop implements heap.Interface.
func (r *retries) Pop() any {
	last := len(*r) - 1
	d := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return d
}
