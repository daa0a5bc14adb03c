package webhooks

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestTheBacklogIsWhatIsOpen follows random histories, in which attempts begin and end at any moment: what the state
// has open the backlog has, each once; about one owner nobody has two under way, and what is handed out is the first
// that is due.
func TestTheBacklogIsWhatIsOpen(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := projectiontest.NewRegistrar(t, seed)
		r.Play(1500)
		var now scalar.Time
		clock := func() time.Time { return now.Std() }
		state, b := onboarding.NewState(), newBacklog(clock)
		var taken []*delivery
		for _, e := range r.Entries {
			now = e.Record.Time
			state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			b.follow(e, state)
			if random.IntN(3) == 0 && len(taken) > 0 {
				n := random.IntN(len(taken))
				b.done(taken[n], random.IntN(2) == 0)
				taken = slices.Delete(taken, n, n+1)
			}
			for _, h := range b.endpoints {
				if d, at, _ := b.take(h); d != nil && random.IntN(2) == 0 {
					if at != e.Position.Sequence {
						t.Fatalf("it is of record %d, after record %d", at, e.Position.Sequence)
					}
					checkTaken(t, state, h, d, taken)
					taken = append(taken, d)
				} else if d != nil {
					b.done(d, true)
				}
			}
			checkOpen(t, state, b)
		}
		again := newBacklog(clock)
		again.start(state, r.Entries[len(r.Entries)-1].Position)
		checkOpen(t, state, again)
		now = math.MaxInt64
		checkDrained(t, state, again)
	}
}

// TestALogAheadOfTheClockDelaysNoRetry compares the backlog of a node whose clock is days behind the log with that of a
// node whose clock is right: both have the same deliveries due, and wait equally long for the next retry.
func TestALogAheadOfTheClockDelaysNoRetry(t *testing.T) {
	const behind = 4 * scalar.Day
	r := projectiontest.NewRegistrar(t, 1)
	r.Play(1500)
	var now scalar.Time
	rightClock := func() time.Time { return now.Std() }
	wrongClock := func() time.Time { return (now - behind).Std() }
	right, wrong := newBacklog(rightClock), newBacklog(wrongClock)
	waited := 0
	compare := func() {
		t.Helper()
		for id := range right.endpoints {
			want, next := takeAll(right, id)
			got, later := takeAll(wrong, id)
			if !maps.Equal(got, want) {
				t.Fatalf("with the wrong clock %v are due, want %v", got, want)
			}
			if next != 0 {
				waited++
				next -= behind
			}
			if later != next {
				t.Fatalf("with the wrong clock the next retry is at %v, want %v", later, next)
			}
		}
	}
	state := onboarding.NewState()
	for _, e := range r.Entries {
		now = e.Record.Time
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		right.follow(e, state)
		wrong.follow(e, state)
		compare()
	}
	last := r.Entries[len(r.Entries)-1].Position
	right, wrong = newBacklog(rightClock), newBacklog(wrongClock)
	right.start(state, last)
	wrong.start(state, last)
	compare()
	if waited == 0 {
		t.Error("no retry was waited for")
	}
}

// takeAll takes what is due of a webhook, puts it back, and returns it with the time of the next retry.
func takeAll(b *backlog, webhook scalar.ID) (due map[scalar.ID]bool, next scalar.Time) {
	due = make(map[scalar.ID]bool)
	var taken []*delivery
	var d *delivery
	for d, _, next = b.take(b.endpoints[webhook]); d != nil; d, _, next = b.take(b.endpoints[webhook]) {
		due[d.id] = true
		taken = append(taken, d)
	}
	for _, d := range taken {
		b.done(d, true)
	}
	return due, next
}

// checkTaken fails unless a delivery may go out now.
func checkTaken(t *testing.T, s *onboarding.State, h *endpoint, d *delivery, taken []*delivery) {
	t.Helper()
	v, known := s.Delivery(d.id)
	if !known || !v.Status.IsOpen() || v.Attempts != d.attempts || v.NoticeID != d.noticeID || d.notice != nil && d.notice.ID != d.noticeID {
		t.Fatalf("%+v is handed out, the state has %+v", d, v)
	}
	if w, _ := s.Webhook(v.WebhookID); w.Disabled != 0 {
		t.Fatalf("%v is handed out, to a registration that is disabled", d.id)
	}
	for _, o := range taken {
		if o.queue == d.queue {
			t.Fatalf("%v is handed out while %v is under way", d.id, o.id)
		}
	}
	for _, o := range h.open {
		if o.queue == d.queue && o.standing == isDue && o.made.Compare(d.made) < 0 && v.Ref != (owner.Ref{}) {
			t.Fatalf("%v is handed out before %v", d.id, o.id)
		}
	}
}

// checkOpen fails unless the backlog has what the state has open, each in one place.
func checkOpen(t *testing.T, s *onboarding.State, b *backlog) {
	t.Helper()
	count := 0
	for _, v := range s.OpenDeliveries() {
		d := b.endpoints[v.WebhookID].open[v.ID]
		if d == nil || d.attempts != v.Attempts || d.next != v.NextAttempt {
			t.Fatalf("of %+v the backlog has %+v", v, d)
		}
		if slices.Contains(d.queue.due, d) != (d.standing == isDue) || slices.Contains(d.queue.endpoint.retries.Entries(), d) != (d.standing == isWaiting) {
			t.Fatalf("%+v is not where it should be", d)
		}
		count++
	}
	notices := 0
	for id, h := range b.endpoints {
		count -= len(h.open)
		for at, l := range h.queues {
			if l.ready != slices.Contains(h.ready, l) || len(l.due) > 0 && !l.taken && !l.ready || l.open == 0 && !l.taken {
				t.Fatalf("the lane %v of %v: %d due of %d, ready %t, taken %t", at, id, len(l.due), l.open, l.ready, l.taken)
			}
		}
		for _, d := range h.open {
			if d.notice != nil {
				notices++
			}
		}
	}
	if count != 0 || notices != b.notices {
		t.Fatalf("the backlog has %d more than the state, and counts %d notices of %d", -count, b.notices, notices)
	}
}

// checkDrained hands out all that is there, at the end of all time.
func checkDrained(t *testing.T, s *onboarding.State, b *backlog) {
	t.Helper()
	want := make(map[scalar.ID]bool)
	for _, v := range s.OpenDeliveries() {
		if w, _ := s.Webhook(v.WebhookID); w.Disabled == 0 {
			want[v.ID] = true
		}
	}
	got := make(map[scalar.ID]bool)
	for _, h := range b.endpoints {
		for d, _, _ := b.take(h); d != nil; d, _, _ = b.take(h) {
			got[d.id] = true
			b.done(d, false)
		}
	}
	if !maps.Equal(got, want) || len(got) == 0 {
		t.Fatalf("%d are handed out of %d", len(got), len(want))
	}
}
