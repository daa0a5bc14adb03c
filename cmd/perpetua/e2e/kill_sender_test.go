package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// sending is a cluster with two nodes that send webhooks and do nothing else, and a tenant's receiver with several registrations.
// What the senders record goes to the journal's owner through a gate.
type sending struct {
	*intake
	cluster      *cluster
	gate         *peerGate
	asked        string // a questionnaire, by which the entitlements are got
	entitlements []string
	paths        map[string]string // of the registrations, by id
	random       *rand.Rand
	people       int
	// lost are the paths to which the first notice about an owner went by a sender that could not record it, by the owner's id.
	lost map[string][]string
}

// noticesEach is how many notices there are about each person: two of what to answer, and two of the end.
const noticesEach = 4

// killPoint is a moment at which senders are killed: they have made requests, which are held.
type killPoint struct {
	name string
	shut func()
	held func(t testing.TB, n int)
	gone func(t testing.TB, n int)
	open func()
	lost bool // that they have made them is not recorded
}

// TestKilledSenders kills one sender or the other amid deliveries: when receivers have answered and the journal's owner has not got
// that, when it has recorded that and the sender does not know it yet, and when receivers have not answered. The other sender
// takes over. What was not recorded is sent once more, with the same id and bytes; and nothing else is sent twice, which goes for
// senders that live as well. What was told of the same person since waits for the receipt, while what is about others does not:
// so it comes to a receiver in the order of the log, whoever is killed.
func TestKilledSenders(t *testing.T) {
	t.Parallel()
	s := startSending(t)
	const record = "delivery.record_attempts"
	points := []killPoint{
		{"answered", func() { s.gate.closeFor(record, false) }, s.gate.held, s.gate.gone, s.gate.open, true},
		{"recorded", func() { s.gate.closeFor(record, true) }, s.gate.held, s.gate.gone, s.gate.open, false},
		{"not answered", s.hooks.answers.shut, s.hooks.answers.held, s.hooks.answers.gone, s.hooks.answers.open, true},
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
	for _, name := range []string{"Reading", "Writing"} {
		s.entitlements = append(s.entitlements, s.intake.entitlement(name, "person", "automatic", "", s.asked))
	}
	for n := range 2 { // with two people to tell of, as many receipts as a sender has commands under way: each is in one of them
		path := fmt.Sprintf("/hook-%d", n)
		s.paths[s.subscribe(path, "").text("id")] = path
	}
	return s
}

// apply has people apply for both entitlements, so that each registration is told of each what to answer, twice.
func (s *sending) apply(people int) (of []string) {
	s.t.Helper()
	for range people {
		s.people++
		path, _ := s.register("persons", fmt.Sprintf(`{"external_id":"p-%d","first_name":"A","last_name":"B"}`, s.people))
		of = append(of, path)
		for _, e := range s.entitlements {
			s.trigger(path, e)
		}
	}
	return of
}

// finish has people answer, so that each registration is told of each that this is the end, of both.
func (s *sending) finish(of []string) {
	s.t.Helper()
	for _, path := range of {
		s.respond(path, s.asked, "name", `"Ann"`)
	}
}

// kill kills a sender at a moment: when the senders have told all registrations of two people once, of the first of whom all else
// is to be told. The dead one comes back when all is told.
func (s *sending) kill(t *testing.T, at killPoint) {
	t.Helper()
	s.rested(t) // or a sender's turn could be over between the first person and the second
	at.shut()
	first := s.apply(1)
	s.finish(first)
	second := s.apply(1)
	s.passed(t, first[0], second[0])
	at.held(t, 2*len(s.paths))
	had := s.hold(t)
	victim := []int{1, 2}[s.random.IntN(2)]
	if len(had[victim]) == 0 { // the other one was quicker to take all registrations
		victim = 3 - victim
	}
	s.cluster.node(victim).kill()
	killed := time.Now()
	at.gone(t, 2*len(had[victim]))
	if at.lost {
		s.lost[idOf(first[0])], s.lost[idOf(second[0])] = had[victim], had[victim]
		s.waiting(t, first[0])
	}
	at.open()
	s.finish(second)
	s.finish(s.apply(1))
	s.told(t)
	t.Logf("%s: node %d was killed with the registrations %v; all was told %v later", at.name, victim, had[victim], time.Since(killed).Round(time.Millisecond))
	s.cluster.again(victim)
}

// idOf returns the id of a person, who is known by a path.
func idOf(person string) string { return strings.TrimPrefix(person, "/api/v1/persons/") }

// passed waits until the senders have told of somebody who applied when all about the first one was in the log. What else is to be
// told of the first one waits.
func (s *sending) passed(t *testing.T, first, second string) {
	t.Helper()
	for _, path := range s.paths {
		s.hooks.await(path, "a notice about the second person", func(event object) bool { return event.text("owner_id") == idOf(second) })
	}
	s.waiting(t, first)
}

// waiting wants the registrations to have been told nothing of a person but the first, whose receipt nobody has.
func (s *sending) waiting(t *testing.T, person string) {
	t.Helper()
	for _, path := range s.paths {
		for _, p := range s.hooks.came(path, 0) {
			if event := p.event(t); event.text("owner_id") == idOf(person) && numberOf(event) != "1" {
				t.Fatalf("%s: notice %s of %s came before there was a receipt of the first", path, numberOf(event), person)
			}
		}
	}
}

// numberOf returns the number that the body of a notice has among those about its owner.
func numberOf(event object) (number json.Number) {
	details, _ := event["details"].(map[string]any)
	number, _ = details["sequence"].(json.Number)
	return number
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

// rested waits until nobody has a job.
func (s *sending) rested(t *testing.T) {
	t.Helper()
	db := s.cluster.database()
	defer db.Close(context.Background())
	waitForWord(t, "the jobs to be over", func() string {
		var running int
		if err := db.QueryRow(context.Background(), `SELECT count(*) FROM perpetua_jobs.river_job WHERE state = 'running'`).Scan(&running); err != nil || running > 0 {
			return fmt.Sprintf("%d are running (%v)", running, err)
		}
		return ""
	})
}

// told waits until the rows have everything delivered.
func (s *sending) told(t *testing.T) {
	t.Helper()
	db := s.cluster.database()
	defer db.Close(context.Background())
	waitForWord(t, "everything to be told", func() string {
		var told, all int
		err := db.QueryRow(context.Background(), `SELECT count(*) FILTER (WHERE status = 'delivered'), count(*) FROM deliveries`).Scan(&told, &all)
		if err == nil && told == all && all == noticesEach*s.people*len(s.paths) {
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
			if len(notices) != noticesEach || len(receipts) != len(s.paths) {
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
		number := numberOf(event)
		if owner := event.text("owner_id"); last[owner] > number { // of one digit
			t.Errorf("%s: notice %s of %s came after %s", path, number, owner, last[owner])
		} else {
			last[owner] = number
		}
	}
	for owner, notices := range log.notices {
		for i, n := range notices {
			want := 1
			if i == 0 && slices.Contains(s.lost[owner], path) {
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
