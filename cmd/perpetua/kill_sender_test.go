package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

// sending is a cluster with two nodes that send webhooks and do nothing else, and a tenant's receiver with several registrations.
// What the senders record goes to the journal's owner through a gate.
type sending struct {
	*intake
	cluster     *cluster
	gate        *peerGate
	asked       string // a questionnaire, by which the entitlement is got
	entitlement string
	paths       map[string]string // of the registrations, by id
	random      *rand.Rand
	people      int
	// lost are the paths to which the first notice about an owner went by a sender that could not record it, by the owner's path.
	lost map[string][]string
}

// killPoint is a moment at which senders are killed: they have made requests, which are held.
type killPoint struct {
	name string
	shut func()
	held func(t testing.TB, n int)
	open func()
	lost bool // that they have made them is not recorded
}

// TestKilledSenders kills one sender or the other amid deliveries: when receivers have answered and the journal's owner has not got
// that, when it has recorded that and the sender does not know it yet, and when receivers have not answered. The other sender
// takes over. What was not recorded is sent once more, with the same id and bytes, before what comes after it; and
// nothing else is sent twice, which goes for senders that live as well.
func TestKilledSenders(t *testing.T) {
	t.Parallel()
	s := startSending(t)
	const record = "delivery.record_attempts"
	points := []killPoint{
		{"answered", func() { s.gate.closeFor(record, false) }, s.gate.held, s.gate.open, true},
		{"recorded", func() { s.gate.closeFor(record, true) }, s.gate.held, s.gate.open, false},
		{"not answered", s.hooks.answers.shut, s.hooks.answers.held, s.hooks.answers.open, true},
	}
	s.finish(s.apply(3))
	s.told(t)
	for range max(kills(t)/5, 1) {
		for _, m := range points {
			s.kill(t, m)
		}
	}
	s.check(t)
}

// startSending starts it.
func startSending(t *testing.T) *sending {
	t.Helper()
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	v, hooks := newVenue(t), newWebhookReceiver(t)
	v.env = append(v.env, hooks.settings()...)
	c := newClusterOn(t, v, brokersIn(t, v.dir))
	s := &sending{cluster: c, gate: c.joinBehind(t, "engine,api,projector"), paths: make(map[string]string), random: rand.New(rand.NewPCG(seed, 1)),
		lost: make(map[string][]string)}
	c.join(t, "sender", "sender")
	s.intake = &intake{reading: &reading{desk: &desk{venue: c.node(0)}}, hooks: hooks}
	s.asked = s.questionnaire("the person", "person", "", []question{{value: "name", kind: "text"}})
	s.entitlement = s.intake.entitlement("Reading", "person", "automatic", "", s.asked)
	for n := range 4 { // as many commands a sender has under way: each receipt is in one of them
		path := fmt.Sprintf("/hook-%d", n)
		s.paths[s.subscribe(path, "").text("id")] = path
	}
	return s
}

// apply has people apply, so that each registration is told of each what to answer.
func (s *sending) apply(people int) (of []string) {
	s.t.Helper()
	for range people {
		s.people++
		path, _ := s.register("persons", fmt.Sprintf(`{"external_id":"p-%d","first_name":"A","last_name":"B"}`, s.people))
		of = append(of, path)
		s.trigger(path, s.entitlement)
	}
	return of
}

// finish has people answer, so that each registration is told of each that this is the end.
func (s *sending) finish(of []string) {
	s.t.Helper()
	for _, path := range of {
		s.respond(path, s.asked, "name", `"Ann"`)
	}
}

// kill kills a sender at a moment: when the senders have told all registrations of one person. There is more to tell then. The dead
// one comes back when all is told.
func (s *sending) kill(t *testing.T, at killPoint) {
	t.Helper()
	at.shut()
	first := s.apply(1)
	at.held(t, len(s.paths))
	had := s.hold(t)
	victim := []int{1, 2}[s.random.IntN(2)]
	if len(had[victim]) == 0 { // the other one was quicker to take all registrations
		victim = 3 - victim
	}
	s.cluster.node(victim).kill()
	killed := time.Now()
	at.held(t, len(s.paths)-len(had[victim]))
	s.finish(first)
	at.open()
	s.finish(s.apply(2))
	if at.lost {
		s.lost[first[0]] = had[victim]
	}
	s.told(t)
	t.Logf("%s: node %d was killed with the registrations %v; all was told %v later", at.name, victim, had[victim], time.Since(killed).Round(time.Millisecond))
	s.cluster.again(victim)
}

// hold returns the paths of the registrations that each sender has the job of.
func (s *sending) hold(t *testing.T) map[int][]string {
	t.Helper()
	db := s.cluster.database()
	defer db.Close(context.Background())
	had := make(map[int][]string)
	rows, err := db.Query(context.Background(), `SELECT args->>'webhook_id', attempted_by[cardinality(attempted_by)] FROM perpetua_jobs.river_job WHERE state = 'running'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var webhook, by string
		var node int
		if err := rows.Scan(&webhook, &by); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(by, "node-%d/", &node); err != nil {
			t.Fatalf("%s has a job: %v", by, err)
		}
		had[node] = append(had[node], s.paths[webhook])
	}
	if err := rows.Err(); err != nil || len(had[1])+len(had[2]) != len(s.paths) {
		t.Fatalf("the senders have the jobs of %v (%v)", had, err)
	}
	return had
}

// told waits until the rows have everything delivered.
func (s *sending) told(t *testing.T) {
	t.Helper()
	db := s.cluster.database()
	defer db.Close(context.Background())
	waitForWord(t, "everything to be told", func() string {
		var told, all int
		err := db.QueryRow(context.Background(), `SELECT count(*) FILTER (WHERE status = 'delivered'), count(*) FROM deliveries`).Scan(&told, &all)
		if err == nil && told == all && all == 2*s.people*len(s.paths) {
			return ""
		}
		return fmt.Sprintf("%d of %d deliveries to %d people (%v)", told, all, s.people, err)
	})
}

// check holds all that came against the log, and the log against the rules.
func (s *sending) check(t *testing.T) {
	t.Helper()
	log := foldAdmitted(t, s.cluster.records("onboarding"))
	if len(log.notices) != s.people {
		t.Errorf("the log tells of %d people, not of %d", len(log.notices), s.people)
	}
	for _, path := range s.paths {
		s.checkPath(t, log, path)
	}
	for owner, notices := range log.notices {
		for _, n := range notices {
			receipts := log.receipts[n.text("id")]
			if len(notices) != 2 || len(receipts) != len(s.paths) {
				t.Errorf("of %s there are %d notices, of %s %d receipts", owner, len(notices), n.text("id"), len(receipts))
			}
			for _, r := range receipts {
				if r.text("number") != "1" || r.text("status") != "delivered" {
					t.Errorf("a receipt of %s: %v", n.text("id"), r)
				}
			}
		}
	}
}

// checkPath wants each notice to have come once, or once more where its sender was killed, and those about one owner in their order.
func (s *sending) checkPath(t *testing.T, log *admitted, path string) {
	t.Helper()
	bodies, times, last := make(map[string][]byte), make(map[string]int), make(map[string]json.Number)
	for _, p := range s.hooks.came(path, 0) {
		id, event := p.Header.Get("webhook-id"), p.event(t)
		if body, came := bodies[id]; p.Status != http.StatusOK || came && !bytes.Equal(body, p.Body) {
			t.Errorf("%s: %d to\n%s\nwhich came before as\n%s", path, p.Status, p.Body, body)
		}
		bodies[id] = p.Body
		times[id]++
		details, _ := event["details"].(map[string]any)
		number, _ := details["sequence"].(json.Number)
		if owner := event.text("owner_id"); last[owner] > number { // of one digit
			t.Errorf("%s: notice %s of %s came after %s", path, number, owner, last[owner])
		} else {
			last[owner] = number
		}
	}
	for owner, notices := range log.notices {
		for i, n := range notices {
			want := 1
			if i == 0 && slices.Contains(s.lost["/api/v1/persons/"+owner], path) {
				want = 2
			}
			if got := times[n.text("id")]; got != want {
				t.Errorf("%s: notice %d of %s came %d times, not %d", path, i+1, owner, got, want)
			}
			delete(times, n.text("id"))
		}
	}
	if len(times) > 0 {
		t.Errorf("%s: the log has none of %v", path, times)
	}
}
