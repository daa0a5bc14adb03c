package webhooks

import (
	"context"
	"crypto/ed25519"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

var quick = webhook.Schedule{20 * scalar.Millisecond, 20 * scalar.Millisecond, 20 * scalar.Millisecond}

// TestDeliveries: each receiver gets each notice that it wants, signed, about one owner in the order of the log; the receipts
// tell of each attempt.
func TestDeliveries(t *testing.T) {
	v := newVenue(t)
	all, some := newSink(t, nil), newSink(t, nil)
	toAll, toSome := v.register(all), v.register(some, webhook.EntitlementFailed)
	v.run(v.sender("a", Within, quick, all, some).Run)
	var people []file
	for range 3 {
		people = append(people, v.person())
	}
	for n := range 3 {
		for _, p := range people {
			v.ask(p, "why "+string(rune('a'+n)))
		}
	}
	v.until("all is delivered", v.settled(toAll, 12, webhook.Delivered))
	for _, p := range people {
		var about []string
		for _, a := range all.got() {
			if strings.Contains(a.body, p.Ref.ID.String()) {
				about = append(about, a.body)
			}
		}
		if len(about) != 4 {
			t.Fatalf("%d requests about one owner", len(about))
		}
		for n, want := range []string{`"reason":"onboarding","sequence":1`, `"reason":"why a","sequence":2`, `"reason":"why b","sequence":3`, `"reason":"why c","sequence":4`} {
			if !strings.Contains(about[n], want) {
				t.Errorf("notice %d is %s", n+1, about[n])
			}
		}
	}
	deliveries, attempts := v.receipts(toAll)
	for _, d := range deliveries {
		if a := attempts[d.ID]; len(a) != 1 || a[0].StatusCode != 200 || a[0].Number != 1 || a[0].Started == 0 {
			t.Errorf("the attempts of %v are %v", d.ID, a)
		}
	}
	if !v.settled(toSome, 0)() || len(some.got()) != 0 {
		t.Error("a receiver gets what it did not select")
	}
	if all.most < 2 || all.most > PerReceiver {
		t.Logf("%d requests at a time", all.most) // what is about several owners may go out at once; nothing says that it must
	}
}

// TestMisbehavingReceivers: whatever a receiver does but answering 200, its deliveries are tried as often as the schedule has it
// with the same id and bytes, and then are dead; replayed, they are tried again. Others get theirs meanwhile.
func TestMisbehavingReceivers(t *testing.T) {
	v := newVenue(t)
	fine := newSink(t, nil)
	bad := map[string]*sink{
		"500": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }),
		"410": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }),
		"204": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }),
		"redirect": newSink(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fine.server.URL, http.StatusPermanentRedirect)
		}),
		"429": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000")
			w.WriteHeader(429)
		}),
		"reset": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn).SetLinger(0)
			conn.Close()
		}),
		"101": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { // and then nothing, for as long as anybody listens
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: silence\r\n\r\n"))
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}),
		"099": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = conn.Write([]byte("HTTP/1.1 099 Less\r\nContent-Length: 0\r\n\r\n"))
			conn.Close()
		}),
	}
	unanswered := []string{"reset", "099"}
	ids := map[string]scalar.ID{"fine": v.register(fine)}
	receivers := []*sink{fine}
	for name, r := range bad {
		ids[name] = v.register(r)
		receivers = append(receivers, r)
	}
	s := v.sender("a", Within, quick, receivers...)
	v.run(s.Run)
	v.person()
	v.until("the good one has its own", v.settled(ids["fine"], 1, webhook.Delivered))
	for name, r := range bad {
		v.until("all is tried of "+name, v.settled(ids[name], 1, webhook.Dead))
		got := r.got()
		if len(got) != len(quick)+1 || slices.ContainsFunc(got, func(a arrival) bool { return a != got[0] }) {
			t.Errorf("%s got %v", name, got)
		}
		deliveries, attempts := v.receipts(ids[name])
		if a := attempts[deliveries[0].ID]; len(a) != len(quick)+1 || (a[0].StatusCode == 0) != slices.Contains(unanswered, name) || (a[0].Error == "") == (a[0].StatusCode == 0) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if got := fine.got(); len(got) != 1 {
		t.Errorf("the good one got %d requests: the redirect was followed", len(got))
	}
}

// TestReplayBringsForward replays a delivery that would be retried in an hour: it goes out at once, with the same id and bytes.
func TestReplayBringsForward(t *testing.T) {
	v := newVenue(t)
	for n := 2; n <= onboarding.Rules().Newest(); n++ {
		do[*decide.RulesActivated](v, operator, &decide.ActivateRules{Rules: n})
	}
	r := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	hook := v.register(r, webhook.Test)
	v.run(v.sender("a", Within, webhook.Schedule{scalar.Hour}, r).Run)
	made := do[*onboarding.DeliveryCreated](v, tenant, &onboarding.TestWebhook{ID: hook})
	v.until("it waits for its retry", v.settled(hook, 1, webhook.Retrying))
	do[*onboarding.DeliveryReplayed](v, tenant, &onboarding.ReplayDelivery{ID: made.ID})
	v.until("it is delivered", v.settled(hook, 1, webhook.Delivered))
	if got := r.got(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("%v", got)
	}
	if _, attempts := v.receipts(hook); len(attempts[made.ID]) != 2 || attempts[made.ID][1].Number != 2 {
		t.Errorf("%+v", attempts)
	}
}

// TestSilentReceivers: one that takes requests and answers none holds up nobody else.
func TestSilentReceivers(t *testing.T) {
	v := newVenue(t)
	silent := newSink(t, func(_ int, _ http.ResponseWriter, r *http.Request) { sayNothing(r) })
	fine := newSink(t, nil)
	toSilent, toFine := v.register(silent), v.register(fine)
	v.run(v.sender("a", 300*time.Millisecond, quick, silent, fine).Run)
	for range 3 * PerReceiver {
		v.person()
	}
	v.until("the silent one's are dead", v.settled(toSilent, 3*PerReceiver, webhook.Dead))
	deliveries, attempts := v.receipts(toSilent)
	for _, d := range deliveries {
		if a := attempts[d.ID]; len(a) != len(quick)+1 || a[0].StatusCode != 0 || a[0].Error == "" {
			t.Errorf("%+v", a)
		}
	}
	if silent.most > PerReceiver {
		t.Errorf("%d requests were under way to one receiver", silent.most)
	}
	v.until("the others are over", func() bool {
		return v.settled(toFine, 3*PerReceiver, webhook.Delivered, webhook.Dead)() // a busy machine may be silent, too
	})
}

// TestADisabledReceiver: once all attempts have failed for too long nothing is tried any more, and nobody looks at what accrues,
// until the registration is enabled.
func TestADisabledReceiver(t *testing.T) {
	v := newVenue(t)
	var refuse atomic.Bool
	refuse.Store(true)
	r := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if refuse.Load() {
			w.WriteHeader(500)
		}
	})
	id := v.register(r)
	v.run(v.sender("a", Within, webhook.Schedule{scalar.Day}, r).Run)
	p := v.person()
	v.until("the first attempt has failed", v.settled(id, 1, webhook.Retrying))
	v.ahead.Store(int64(webhook.DisableAfter))
	v.ask(p, "b")
	v.until("it is disabled", func() (disabled bool) {
		v.fold.View(func(s decide.State, _ record.Position) {
			w, _ := s.(*onboarding.State).Webhook(id)
			disabled = w.Disabled != 0
		})
		return disabled
	})
	came := len(r.got())
	v.ask(p, "c")
	v.ask(p, "d")
	v.until("two have accrued", func() bool { return v.counted(webhook.Pending) == 2 })
	v.until("no job is left", func() (none bool) {
		err := v.pool.QueryRow(t.Context(), "SELECT count(*) = 0 FROM perpetua_jobs.river_job WHERE state <> 'completed'").Scan(&none)
		return err == nil && none
	})
	if now := len(r.got()); now != came {
		t.Errorf("%d requests came after it was disabled", now-came)
	}
	refuse.Store(false)
	do[*onboarding.WebhookEnabled](v, tenant, &onboarding.EnableWebhook{ID: id})
	v.until("what accrued is delivered", func() bool { return v.counted(webhook.Delivered) == 2 })
}

// TestOrder: what is about one owner goes out one after the other, each only when it is known how the one before went. One that
// waits for a retry lets the others go on.
func TestOrder(t *testing.T) {
	inTime := false
	for wait := 300 * scalar.Millisecond; !inTime && wait < scalar.Minute; wait *= 4 {
		inTime = inOrder(t, wait)
	}
	if !inTime {
		t.Error("the retry is always due before the others are through")
	}
}

// inOrder has the first of three be tried again after a wait, unless that is over before the others are through.
func inOrder(t *testing.T, wait scalar.Time) (inTime bool) {
	t.Helper()
	v := newVenue(t)
	entered, leave := make(chan struct{}, 10), make(chan int, 10)
	r := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		w.WriteHeader(<-leave)
	})
	id := v.register(r)
	p := v.person()
	v.ask(p, "b")
	v.ask(p, "c")
	v.until("the rows have all", v.settled(id, 3, webhook.Pending))
	stop := v.run(v.sender("a", Within, webhook.Schedule{wait}, r).Run)
	defer stop()
	var refused, third time.Time
	for n, status := range []int{500, 200, 200, 200} {
		<-entered
		if got := r.got(); len(got) != n+1 { // the next one may not have begun
			t.Fatalf("%d requests while one is under way", len(got))
		}
		switch n {
		case 0:
			refused = time.Now()
		case 2:
			third = time.Now()
		}
		leave <- status
	}
	v.until("all are delivered", v.settled(id, 3, webhook.Delivered))
	if scalar.Time(third.Sub(refused)/time.Microsecond) > wait/2 { // a wait is a fifth shorter or longer than it is said to be
		return false
	}
	got := r.got()
	if len(got) != 4 || got[0] != got[3] || !strings.Contains(got[1].body, `"sequence":2`) || !strings.Contains(got[2].body, `"sequence":3`) {
		t.Errorf("in this order: %v", got)
	}
	return true
}

// TestForbiddenReceivers: nothing is sent to a private address, and the receipts say so.
func TestForbiddenReceivers(t *testing.T) {
	v := newVenue(t)
	r := newSink(t, nil)
	id := v.register(r)
	s := v.sender("a", Within, quick, r)
	s.cfg.Client = Dialing{}.Client(PerReceiver, Within)
	v.run(s.Run)
	v.person()
	v.until("all is tried", v.settled(id, 1, webhook.Dead))
	deliveries, attempts := v.receipts(id)
	for _, a := range attempts[deliveries[0].ID] {
		if a.StatusCode != 0 || !strings.HasPrefix(a.Error, "ADDRESS_FORBIDDEN") {
			t.Errorf("%+v", a)
		}
	}
	if len(r.got()) != 0 {
		t.Errorf("%v arrived at a private address", r.got())
	}
}

// TestRotation: while one key takes another's place, receivers that know the old one alone, and such that know the new one alone,
// verify all that comes.
func TestRotation(t *testing.T) {
	v := newVenue(t)
	r := newSink(t, nil)
	id := v.register(r)
	v.run(v.sender("a", Within, quick, r).Run)
	p := v.person()
	v.until("the first is delivered", v.settled(id, 1, webhook.Delivered))
	next, public := v.key(id)
	do[*onboarding.RotationBegun](v, tenant, &onboarding.RotateWebhook{ID: id, Key: next, Overlap: 500 * scalar.Millisecond})
	r.trust(public)
	for n := 2; ; n++ {
		v.ask(p, "more")
		v.until("it is delivered", v.settled(id, n, webhook.Delivered))
		var rotated bool
		v.fold.View(func(s decide.State, _ record.Position) {
			w, _ := s.(*onboarding.State).Webhook(id)
			rotated = w.Next == nil
		})
		if rotated {
			break
		}
		if n > 1000 {
			t.Fatal("the rotation does not end")
		}
		<-time.After(50 * time.Millisecond) // the owner's open work is bounded
	}
	r.mu.Lock()
	r.keys = []ed25519.PublicKey{public} // the old one is of no use any more
	r.mu.Unlock()
	came := len(r.got())
	v.person()
	v.until("what comes later arrives", func() bool { return len(r.got()) > came && v.counted(webhook.Pending) == 0 })
}

// TestAStoppedSender breaks off what a receiver holds up. That is no attempt that the log would tell of; the next sender makes it.
func TestAStoppedSender(t *testing.T) {
	v := newVenue(t)
	entered := make(chan struct{}, 10)
	r := newSink(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if entered <- struct{}{}; n == 0 {
			sayNothing(r)
		}
	})
	id := v.register(r)
	stop := v.run(v.sender("a", Within, quick, r).Run)
	v.person()
	<-entered
	stop()
	v.run(v.sender("b", Within, quick, r).Run)
	v.until("it is delivered", v.settled(id, 1, webhook.Delivered))
	deliveries, attempts := v.receipts(id)
	if got := r.got(); len(got) != 2 || got[0] != got[1] || len(attempts[deliveries[0].ID]) != 1 {
		t.Errorf("%v came, the receipts tell of %d attempts", got, len(attempts[deliveries[0].ID]))
	}
}

// TestTwoSenders share the registrations: while both live, nothing is sent twice.
func TestTwoSenders(t *testing.T) {
	v := newVenue(t)
	var receivers []*sink
	var ids []scalar.ID
	for range 6 {
		receivers = append(receivers, newSink(t, nil))
		ids = append(ids, v.register(receivers[len(receivers)-1]))
	}
	stop := v.run(v.sender("a", Within, quick, receivers...).Run)
	v.run(v.sender("b", Within, quick, receivers...).Run)
	const people, each = 6, 3
	twice := false // what the first one breaks off comes again
	for n := range people {
		p := v.person()
		for range each - 1 {
			v.ask(p, "more")
		}
		if n == people/2 {
			began := time.Now()
			stop() // the other one goes on alone
			twice = time.Since(began) >= grace
		}
	}
	for n, id := range ids {
		v.until("all is delivered", v.settled(id, people*each, webhook.Delivered))
		came := make(map[string]string)
		for _, a := range receivers[n].got() {
			if body, twice := came[a.id]; twice && body != a.body {
				t.Errorf("%s came with other bytes", a.id)
			}
			came[a.id] = a.body
		}
		deliveries, attempts := v.receipts(id)
		if requests := len(receivers[n].got()); len(came) != people*each || requests != people*each && !twice {
			t.Errorf("%d events came in %d requests", len(came), requests)
		}
		for _, d := range deliveries {
			if len(attempts[d.ID]) != 1 {
				t.Errorf("%d attempts", len(attempts[d.ID]))
			}
		}
	}
}

// TestADroppedDatabase: the rows come back as they were, and of the deliveries those that were open are sent, and no others.
func TestADroppedDatabase(t *testing.T) {
	v := newVenue(t)
	var receivers []*sink
	for range 10 {
		receivers = append(receivers, newSink(t, nil))
		v.register(receivers[len(receivers)-1])
	}
	arrived := func() (n int) {
		for _, r := range receivers {
			n += len(r.got())
		}
		return n
	}
	var people []file
	for range 100 {
		people = append(people, v.person())
	}
	early := v.fold.Position().Sequence
	stop := v.run(v.sender("a", Within, quick, receivers...).Run)
	v.until("1,000 are delivered", func() bool { return v.counted(webhook.Delivered) == 1000 })
	stop()
	for _, p := range people[:10] {
		v.ask(p, "more")
	}
	v.until("100 are open", func() bool { return v.counted(webhook.Pending) == 100 })
	if err := v.fold.WaitTip(t.Context()); err != nil { // the rows may have come to the end first
		t.Fatal(err)
	}
	last := v.fold.Position().Sequence
	v.until("the rows have all", func() bool { return v.runner.Position().Sequence == last })
	want := v.digests()

	// At first the rows stand where all was open.
	v.stopProjecting()
	bound := v.projectUpTo(projectiontest.VenueURL(t), early)
	v.until("the rows have the deliveries", func() bool { return v.runner.Position().Sequence == early })
	v.run(v.sender("b", Within, quick, receivers...).Run)
	v.until("each registration was looked at", func() (looked bool) {
		err := v.pool.QueryRow(t.Context(), "SELECT count(*) >= 10 FROM perpetua_jobs.river_job WHERE attempt > 0").Scan(&looked)
		return err == nil && looked
	})
	bound.Raise(last)
	v.until("the rows are back", func() bool { return v.runner.Position().Sequence == last })
	v.until("the open ones are sent", func() bool { return arrived() >= 1100 })
	for table, got := range v.digests() { // of the receipts they know nothing yet
		if got != want[table] {
			t.Errorf("the table %s came back with %v, it had %v", table, got, want[table])
		}
	}
	bound.Raise(math.MaxInt64)
	v.until("all is delivered", func() bool { return v.counted(webhook.Delivered) == 1100 })
	if n := arrived(); n != 1100 {
		t.Errorf("%d requests arrived for 1,100 deliveries", n)
	}
}

// counted returns how many deliveries stand at a state.
func (v *venue) counted(at webhook.Status) int {
	_, total, _, err := rows.Deliveries(v.t.Context(), v.pool, rows.DeliveryFilter{Statuses: []webhook.Status{at}}, 1, 0)
	if err != nil {
		v.t.Error(err)
	}
	return total
}

func (v *venue) digests() map[string]projections.Digest {
	v.t.Helper()
	return projectiontest.Digests(v.t, v.pool)
}

// slow is a journal's owner that takes receipts only once it is released.
type slow struct {
	*venue
	released chan struct{}
}

// Submit implements submit.Submitter.
func (s slow) Submit(ctx context.Context, name string, c decide.Command) (submit.Result, error) {
	select {
	case <-s.released:
	case <-ctx.Done():
		return submit.Result{}, &submit.NotAcceptedError{Reason: "nothing is taken yet"}
	}
	return s.venue.Submit(ctx, name, c)
}

// TestReceiptsUnderWay: what is about other owners does not wait for the log to take receipts; the next about the same one does.
func TestReceiptsUnderWay(t *testing.T) {
	v := newVenue(t)
	s := newSink(t, nil)
	id := v.register(s)
	const people = 2 * PerReceiver
	for range people {
		v.ask(v.person(), "more")
	}
	v.until("all is open", v.settled(id, 2*people, webhook.Pending))
	sender, to := v.sender("a", Within, quick, s), slow{v, make(chan struct{})}
	sender.cfg.To = to
	v.run(sender.Run)
	v.until("a request about each owner arrives", func() bool { return len(s.got()) >= people })
	if n := len(s.got()); n != people {
		t.Errorf("%d requests arrived before there was a receipt of the first about each of %d owners", n, people)
	}
	close(to.released)
	v.until("all is delivered", v.settled(id, 2*people, webhook.Delivered))
	if n := len(s.got()); n != 2*people {
		t.Errorf("%d requests arrived for %d deliveries", n, 2*people)
	}
	if s.most > PerReceiver {
		t.Errorf("%d requests were under way to one receiver", s.most)
	}
}

// TestRowsThatAreBehind hold up nothing: what the log has is sent, and its receipts are in the log, while the rows know of
// neither.
func TestRowsThatAreBehind(t *testing.T) {
	v := newVenue(t)
	s := newSink(t, nil)
	id := v.register(s)
	p := v.person()
	v.until("the rows have the first", v.settled(id, 1, webhook.Pending))
	v.stopProjecting()
	v.run(v.sender("a", Within, quick, s).Run)
	v.ask(p, "b")
	q := v.person()
	v.ask(q, "c")
	v.until("all is delivered as far as the log goes", func() (over bool) {
		v.fold.View(func(s decide.State, _ record.Position) {
			over = len(s.(*onboarding.State).OpenDeliveries()) == 0
		})
		return over
	})
	if n := len(s.got()); n != 4 {
		t.Errorf("%d requests arrived for 4 deliveries", n)
	}
}

// TestASenderThatMayNot sends nothing: the deliveries are those of the venue that this one is a copy of.
func TestASenderThatMayNot(t *testing.T) {
	v := newVenue(t)
	r := newSink(t, func(int, http.ResponseWriter, *http.Request) {})
	id := v.register(r)
	var asked atomic.Int32
	var may atomic.Bool
	s := v.sender("a", Within, webhook.Schedule{scalar.Second}, r)
	s.cfg.May = func(context.Context) error {
		asked.Add(1)
		if may.Load() {
			return nil
		}
		return seal.ErrFenced
	}
	v.run(s.Run)
	v.person()
	v.until("it has tried twice", func() bool { return asked.Load() > 1 })
	if n := len(r.got()); n > 0 {
		t.Errorf("%d requests came", n)
	}
	may.Store(true)
	v.until("the delivery is made", v.settled(id, 1, webhook.Delivered))
}
