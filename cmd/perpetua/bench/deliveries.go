package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
)

const (
	receiversMany = 50
	tenantsMany   = 3  // who share the receivers, since one may not register so many
	personsEach   = 16 // of a tenant: deliveries about one go out one after the other
	askersMany    = 2  // connections over which the operator asks; each question is many deliveries
)

// delivering is a venue whose tenants have receivers, and persons with open cases. Each question that the operator asks about a
// case is told to all receivers of its tenant.
type delivering struct {
	*venue
	token         string
	questionnaire string
	triggers      [tenantsMany][]string
	receivers     [tenantsMany]int
	last          string // the registration of the last receiver
	db            *pgxpool.Pool
	asked         int
}

// measureDeliveries measures webhooks from what causes them to their receipts in the log and the rows, synced, beside bare posts
// of the same bodies to the same receivers by the same client; and those to all receivers but one that never answers.
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
	if _, err := dead.rate(ctx, questions); err != nil {
		return err
	}
	return b.pair(Row{Measure: fmt.Sprintf("webhooks delivered, one of %d receivers never answers: to the others", receiversMany), Unit: "deliveries/s",
		Against: "all answer", Aim: atLeast(0.95)},
		func() (float64, error) { return dead.rate(ctx, questions) }, func() (float64, error) { return alive.rate(ctx, questions) })
}

// comparePosts measures deliveries beside bare posts of what was delivered.
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
	return b.pair(Row{Measure: fmt.Sprintf("webhooks delivered to %d receivers, signed, receipts in the log, synced", receiversMany), Unit: "deliveries/s",
		Against: fmt.Sprintf("net/http posts of the same bodies, %d at once to each", webhooks.PerReceiver), Aim: atLeast(0.5)},
		func() (float64, error) { return d.rate(ctx, questions) },
		func() (rate float64, err error) {
			return rate, poster.call(posterRequest{questions * receiversMany / tenantsMany}, &rate)
		})
}

// newDelivering starts a venue and registers receivers with it.
func (b *bench) newDelivering(ctx context.Context, ca string, urls []string) (_ *delivering, err error) {
	v, err := b.newVenue(ctx, "--sync=true", "--webhook-ca", ca, "--webhook-allow", "127.0.0.0/8")
	if err != nil {
		return nil, err
	}
	d := &delivering{venue: v}
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
	d.venue.discard()
}

// entitle makes an entitlement that asks for a questionnaire.
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

// enrol makes a tenant with a user, and persons with open cases.
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

// calibrate returns how many questions take about so long to be delivered.
func (d *delivering) calibrate(ctx context.Context, round time.Duration) (int, error) {
	const first = 2 * tenantsMany * personsEach
	rate := 0.0
	for range 2 { // the first makes connections
		var err error
		if rate, err = d.rate(ctx, first); err != nil {
			return 0, err
		}
	}
	return max(first, int(rate*round.Seconds())*tenantsMany/receiversMany), nil
}

// rate has the operator ask so many questions, and returns how many deliveries a second went to all receivers but the last, from
// the first question until the last receipt.
func (d *delivering) rate(ctx context.Context, questions int) (float64, error) {
	start := time.Now()
	caused := 0
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(askersMany)
	for range questions {
		n := d.asked % tenantsMany
		trigger := d.triggers[n][d.asked/tenantsMany%personsEach]
		d.asked++
		caused += d.receivers[n]
		if n == (receiversMany-1)%tenantsMany {
			caused--
		}
		g.Go(func() error { return d.ask(asking, trigger) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	if _, err := d.answersOpen(ctx, start); err != nil {
		return 0, err
	}
	for open := true; open; time.Sleep(5 * time.Millisecond) {
		if err := d.db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM deliveries WHERE status IN ('pending', 'retrying') AND webhook_id <> $1::text::uuid)", d.last).Scan(&open); err != nil {
			return 0, err
		}
	}
	return float64(caused) / time.Since(start).Seconds(), nil
}

// answersOpen waits until the rows hold all questions.
func (d *delivering) answersOpen(ctx context.Context, start time.Time) (time.Duration, error) {
	name := map[string]string{"description": fmt.Sprint("Bench ", d.asked)}
	if _, err := d.do(ctx, "operator", http.MethodPatch, "/admin/v1/questionnaires/"+d.questionnaire, name); err != nil {
		return 0, err
	}
	return d.rowsHold(ctx, start, "/api/v1/persons")
}

// ask asks for the questionnaire once more.
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
	_, _, err = sendOnce(r)
	return err
}
