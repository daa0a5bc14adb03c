package webhooks

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
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
		"500":      newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }),
		"410":      newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }),
		"204":      newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }),
		"redirect": newSink(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, fine.server.URL, 308) }),
		"429": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000")
			w.WriteHeader(429)
		}),
		"reset": newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn).SetLinger(0)
			conn.Close()
		}),
		"silent": newSink(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
	}
	ids := map[string]scalar.ID{"fine": v.register(fine)}
	receivers := []*sink{fine}
	for name, r := range bad {
		ids[name] = v.register(r)
		receivers = append(receivers, r)
	}
	s := v.sender("a", 300*time.Millisecond, quick, receivers...)
	v.run(s.Run)
	v.person()
	v.until("the good one has its own", v.settled(ids["fine"], 1, webhook.Delivered))
	for name, r := range bad {
		v.until("all is tried of "+name, v.settled(ids[name], 1, webhook.Dead))
		got := r.got()
		if len(got) != quick.Attempts() || slices.ContainsFunc(got, func(a arrival) bool { return a != got[0] }) {
			t.Errorf("%s got %v", name, got)
		}
		deliveries, attempts := v.receipts(ids[name])
		if a := attempts[deliveries[0].ID]; len(a) != quick.Attempts() || (a[0].StatusCode == 0) != (name == "reset" || name == "silent") || (a[0].Error == "") == (a[0].StatusCode == 0) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if got := fine.got(); len(got) != 1 {
		t.Errorf("the good one got %d requests: the redirect was followed", len(got))
	}
}
