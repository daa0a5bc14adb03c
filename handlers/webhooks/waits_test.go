package webhooks

import (
	"net/http"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// TestWaits: a delivery that failed says when it is tried again: what the receiver asked for, between the wait and twice the wait;
// without a word of the receiver's the wait, a fifth more or less. After the last wait it is given up.
func TestWaits(t *testing.T) {
	v := newVenue(t)
	const wait = scalar.Hour
	seconds := func(s string) func() string { return func() string { return s } }
	date := func(in time.Duration) func() string {
		return func() string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	}
	for name, c := range map[string]struct {
		asked       func() string // Retry-After
		least, most scalar.Time
	}{
		"nothing":       {seconds(""), wait * 8 / 10, wait * 12 / 10},
		"seconds":       {seconds("5400"), wait * 3 / 2, wait * 3 / 2},
		"too soon":      {seconds("1"), wait, wait},
		"too late":      {seconds("86400"), 2 * wait, 2 * wait},
		"a date":        {date(100 * time.Minute), 90 * scalar.Minute, 100 * scalar.Minute}, // less what it took
		"a late date":   {date(72 * time.Hour), 2 * wait, 2 * wait},
		"a date before": {date(-time.Hour), wait * 8 / 10, wait * 12 / 10},
		"no time":       {seconds("soon"), wait * 8 / 10, wait * 12 / 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.asked())
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			id := v.register(r, webhook.Test)
			stop := v.run(v.sender(name, Within, webhook.Schedule{wait}, r).Run)
			defer stop()
			do[*onboarding.DeliveryCreated](v, tenant, &onboarding.TestWebhook{ID: id})
			v.until("it waits", v.settled(id, 1, webhook.Retrying))
			deliveries, attempts := v.receipts(id)
			d, a := deliveries[0], attempts[deliveries[0].ID]
			if got := d.NextAttempt - a[0].Time; len(a) != 1 || got < c.least || got > c.most {
				t.Errorf("it is tried again after %d µs, want %d to %d", got, c.least, c.most)
			}
		})
	}
}
