package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
)

const (
	receiversMany = 50
	tenantsMany   = 3   // who share the receivers, because one tenant may not register so many
	personsEach   = 256 // of a tenant: deliveries about one person are sequential, and each question makes a case longer
	askersMany    = 32  // connections over which the operator asks questions
)

// delivering is a venue with tenants that have receivers and persons with open cases. Each question of the operator
// about a case is delivered to all receivers of the tenant.
type delivering struct {
	*venue
	token         string
	operator      *http.Client
	questionnaire string
	triggers      [tenantsMany][]string
	receivers     [tenantsMany]int
	last          string // registration of the last receiver
	dead          bool   // the last receiver never answers
	db            *pgxpool.Pool
	questions     int           // number of questions so far
	receipts      int           // number of acknowledged deliveries to expect
	behind        time.Duration // longest time that rows were behind at the end of a round
}

// measureDeliveries measures webhooks from their cause to their receipts in the log, synced. It compares them with bare
// posts of the same bodies to the same receivers by the same client, and measures those to all other receivers while
// one never answers.
func measureDeliveries(ctx context.Context, b *bench) error {
	ca := filepath.Join(b.dir, "receivers.pem")
	var at receiversReady
	receivers, err := b.child(ctx, "receivers", receiversConfig{receiversMany, ca}, &at)
	if err != nil {
		return err
	}
	defer receivers.stop()
	alive, err := b.newDelivering(ctx, ca, at.URLs)
	if err != nil {
		return err
	}
	defer alive.discard()
	questions, err := alive.calibrate(ctx, b.round)
	if err != nil {
		return err
	}
	if err := b.comparePosts(ctx, alive, questions, receivers, posterConfig{URLs: at.URLs, CA: ca}); err != nil {
		return err
	}
	dead, err := b.newDelivering(ctx, ca, append(at.URLs[:receiversMany-1:receiversMany-1], at.Dead))
	if err != nil {
		return err
	}
	defer dead.discard()
	dead.dead = true
	if _, _, err := dead.rate(ctx, questions); err != nil {
		return err
	}
	return b.pair(Row{Measure: fmt.Sprintf("webhooks delivered, one of %d receivers never answers: to the others", receiversMany), Unit: "deliveries/s",
		Against: "all answer", Aim: atLeast(0.95)},
		dead.toOthers(ctx, questions), alive.toOthers(ctx, questions))
}

// comparePosts compares deliveries with bare posts of the delivered bodies.
func (b *bench) comparePosts(ctx context.Context, d *delivering, questions int, receivers *child, to posterConfig) error {
	var came received
	if err := receivers.call(struct{}{}, &came); err != nil {
		return err
	}
	to.Bodies = came.Bodies
	poster, err := b.child(ctx, "poster", to, new(struct{}))
	if err != nil {
		return err
	}
	defer poster.stop()
	deliveries := questions * receiversMany / tenantsMany
	post := func(signed bool) func() (float64, error) {
		return func() (rate float64, err error) {
			return rate, poster.call(posterRequest{deliveries, signed}, &rate)
		}
	}
	deliver, ours := processorTimes(deliveries, func() (float64, error) {
		all, _, err := d.rate(ctx, questions)
		return all, err
	})
	bare, theirs := processorTimes(deliveries, post(false))
	err = b.pair(Row{Measure: fmt.Sprintf("webhooks delivered to %d receivers, signed, receipts in the log, synced", receiversMany), Unit: "deliveries/s",
		Against: fmt.Sprintf("net/http posts of the same bodies, %d at once to each", webhooks.PerReceiver), Aim: atLeast(0.5)},
		deliver, bare)
	if err != nil {
		return err
	}
	b.rows[len(b.rows)-1].Note = fmt.Sprintf("the rows in Postgres were up to %.1f s behind at the end of a round", d.behind.Seconds())
	// Where all processes share the processors, the ratio of these times bounds the one of the rates. Other work on the
	// machine changes them less.
	if len(*theirs) > 1 { // the first is of the warm-up
		b.add(Row{Measure: "processor time of such a delivery, from the question to the rows, with the receiver", Unit: "µs",
			Ours: Sample{Rounds: (*ours)[1:]}, Against: "such a post, with the receiver", Baseline: Sample{Rounds: (*theirs)[1:]}})
	}
	// The cost of signing alone bounds the rate of signed deliveries.
	return b.pair(Row{Measure: "net/http posts with both signatures", Unit: "posts/s", Against: "without"}, post(true), post(false))
}

// processorTimes returns a function that calls do, and a list to which each call adds the processor time that the
// descendants of this process used: microseconds for each of n deliveries. The list stays empty where processor times
// are not available.
func processorTimes(n int, do func() (float64, error)) (func() (float64, error), *[]float64) {
	times := new([]float64)
	return func() (float64, error) {
		before := processorTimeBelow(os.Getpid())
		x, err := do()
		if used := processorTimeBelow(os.Getpid()) - before; used > 0 {
			*times = append(*times, float64(used.Microseconds())/float64(n))
		}
		return x, err
	}, times
}

// toOthers measures deliveries to all receivers except the last.
func (d *delivering) toOthers(ctx context.Context, questions int) func() (float64, error) {
	return func() (float64, error) {
		_, others, err := d.rate(ctx, questions)
		return others, err
	}
}

// newDelivering starts a venue and registers receivers.
func (b *bench) newDelivering(ctx context.Context, ca string, urls []string) (_ *delivering, err error) {
	v, err := b.newVenue(ctx, "--sync=true", "--webhook-ca", ca, "--webhook-allow", "127.0.0.0/8")
	if err != nil {
		return nil, err
	}
	d := &delivering{venue: v, operator: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: askersMany}}}
	defer func() {
		if err != nil {
			d.discard()
		}
	}()
	if d.token, err = v.token(ctx, "operator"); err != nil {
		return nil, err
	}
	if d.db, err = pgxpool.New(ctx, v.Database); err != nil {
		return nil, err
	}
	entitlement, err := d.entitle(ctx)
	if err != nil {
		return nil, err
	}
	for n := range d.triggers {
		if err := d.enrol(ctx, n, entitlement); err != nil {
			return nil, err
		}
	}
	for i, url := range urls {
		n := i % tenantsMany
		if d.last, err = v.made(ctx, tenantUser(n), "/api/v1/webhooks", map[string]string{"url": url}); err != nil {
			return nil, err
		}
		d.receivers[n]++
	}
	return d, nil
}

// discard ends the venue and removes its folder.
func (d *delivering) discard() {
	if d.db != nil {
		d.db.Close()
	}
	d.operator.CloseIdleConnections()
	d.venue.discard()
}

// entitle creates an entitlement with a questionnaire.
func (d *delivering) entitle(ctx context.Context) (id string, err error) {
	d.questionnaire, err = d.made(ctx, "operator", "/admin/v1/questionnaires", map[string]string{"name": "Bench", "owner_type": "person"})
	if err != nil {
		return "", err
	}
	at := "/admin/v1/questionnaires/" + d.questionnaire
	if _, err := d.do(ctx, "operator", http.MethodPost, at+"/versions", draft()); err != nil {
		return "", err
	}
	if _, err := d.do(ctx, "operator", http.MethodPost, at+"/publish", nil); err != nil {
		return "", err
	}
	return d.made(ctx, "operator", "/admin/v1/entitlements", map[string]any{"name": "bench", "description": "Bench", "owner_type": "person", "approval": "manual",
		"questionnaires": []any{map[string]any{"questionnaire_id": d.questionnaire, "position": 1}}})
}

func tenantUser(n int) string { return fmt.Sprint("bench-user-", n) }

// enrol creates a tenant with a user, and persons with open cases.
func (d *delivering) enrol(ctx context.Context, n int, entitlement string) error {
	name, password := fmt.Sprint("bench-", n), "a long password for the bench"
	if _, err := d.do(ctx, "operator", http.MethodPost, "/admin/v1/brokers", map[string]string{"broker": name, "name": name}); err != nil {
		return err
	}
	if _, err := d.do(ctx, "operator", http.MethodPost, "/admin/v1/users", map[string]any{"username": tenantUser(n), "password": password, "broker": name,
		"scopes": []string{"onboarding"}}); err != nil {
		return err
	}
	d.Users = append(d.Users, struct{ Username, Password string }{tenantUser(n), password})
	for i := range personsEach {
		person, err := d.made(ctx, tenantUser(n), "/api/v1/persons", map[string]string{"external_id": fmt.Sprint("bench-", i), "first_name": "Bench", "last_name": fmt.Sprint(i)})
		if err != nil {
			return err
		}
		trigger, err := d.made(ctx, tenantUser(n), "/api/v1/persons/"+person+"/entitlement_triggers", map[string]string{"entitlement_id": entitlement})
		if err != nil {
			return err
		}
		d.triggers[n] = append(d.triggers[n], trigger)
	}
	return nil
}

// calibrate returns the number of questions with deliveries that take about one round.
func (d *delivering) calibrate(ctx context.Context, round time.Duration) (int, error) {
	const first = 2 * tenantsMany * personsEach
	rate := 0.0
	for range 2 { // the first round opens connections
		var err error
		if rate, _, err = d.rate(ctx, first); err != nil {
			return 0, err
		}
	}
	return max(first, int(rate*round.Seconds())*tenantsMany/receiversMany), nil
}

// rate makes the operator ask a number of questions, and returns deliveries per second from the first question to the
// last receipt: to all receivers, and to all except the last.
func (d *delivering) rate(ctx context.Context, questions int) (all, others float64, err error) {
	start := time.Now()
	expected, last := 0, 0
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(askersMany)
	for range questions {
		n := d.questions % tenantsMany
		trigger := d.triggers[n][d.questions/tenantsMany%personsEach]
		d.questions++
		expected += d.receivers[n]
		if n == (receiversMany-1)%tenantsMany {
			last++
		}
		g.Go(func() error { return d.ask(asking, trigger) })
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	if d.dead {
		d.receipts += expected - last
	} else {
		d.receipts += expected
	}
	if err := d.recorded(ctx); err != nil {
		return 0, 0, err
	}
	took := time.Since(start).Seconds()
	behind, err := d.rowsCome(ctx) // otherwise this work would slow down the rival's round
	d.behind = max(d.behind, behind)
	return float64(expected) / took, float64(expected-last) / took, err
}

// recorded waits until all expected receipts are in the log.
func (d *delivering) recorded(ctx context.Context) error {
	for ; ; time.Sleep(20 * time.Millisecond) {
		// The sender counts an attempt as unrecorded before it counts it as acknowledged. So once all are acknowledged,
		// the metric of unrecorded ones includes every receipt that is not in the log yet.
		came, err := d.metric(ctx, `perpetua_webhook_attempts_total{outcome="acknowledged"} `)
		if err != nil {
			return err
		}
		if int(came) < d.receipts {
			continue
		}
		if open, err := d.metric(ctx, "perpetua_webhook_attempts_unrecorded "); err != nil || open == 0 {
			return err
		}
	}
}

// metric returns a metric of the venue.
func (d *delivering) metric(ctx context.Context, name string) (float64, error) {
	metrics, err := d.do(ctx, "operator", http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(metrics)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// rowsCome waits until the rows have all receipts, and returns how long that took.
func (d *delivering) rowsCome(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	for open := true; open; time.Sleep(5 * time.Millisecond) {
		if err := d.db.QueryRow(ctx, "SELECT count(*) FILTER (WHERE status = 'delivered') < $1 FROM deliveries", d.receipts).Scan(&open); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// ask asks for the questionnaire again.
func (d *delivering) ask(ctx context.Context, trigger string) error {
	content, err := json.Marshal(map[string]any{"code": "MORE", "reason": "The answers do not say enough.", "questionnaire_ids": []string{d.questionnaire}})
	if err != nil {
		return err
	}
	path := "/admin/v1/entitlement_triggers/" + trigger + "/request_information"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.REST+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Content-Type", "application/json")
	_, _, err = sendOnce(d.operator, r)
	return err
}
