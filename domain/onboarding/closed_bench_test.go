package onboarding_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// course folds deliveries about nobody that are acknowledged at once, each in two records.
type course struct {
	state *onboarding.State
	at    decide.Stamp
}

func newCourse(b *testing.B, rules int) *course {
	l := owners(b)
	l.must(alpha, hook(50))
	if rules > 1 {
		l.must(operator, &decide.ActivateRules{Rules: rules})
	}
	return &course{l.state, l.stamp()}
}

func (c *course) fold(events ...decide.Event) {
	c.state.Evolve(c.at, decide.Recorded{}, decide.Accepted, events)
	c.at.Sequence++
}

func (c *course) deliver() {
	made := c.at.Derive(1)
	c.fold(&onboarding.NoticeGiven{Notice: onboarding.Notice{ID: c.at.Derive(0), Type: webhook.Test, Tenant: "alpha"}},
		&onboarding.DeliveryCreated{ID: made, WebhookID: id(50), Tenant: "alpha", NoticeID: c.at.Derive(0), Type: webhook.Test})
	c.fold(&onboarding.DeliveryAttempted{ID: made, WebhookID: id(50), Tenant: "alpha", Number: 1, StatusCode: 200, Status: webhook.Delivered})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkDeliveries folds deliveries from their making to their end, where so many were before, by the rules that keep them all
// and by those that forget. It tells how large the state and its snapshot are by then.
func BenchmarkDeliveries(b *testing.B) {
	for _, rules := range []int{1, 2} {
		for _, before := range []int{1_000, 200_000} {
			b.Run(fmt.Sprintf("rules=%d/before=%d", rules, before), func(b *testing.B) {
				empty := heap()
				c := newCourse(b, rules)
				for range before {
					c.deliver()
				}
				size, saved := heap()-empty, len(onboarding.Codec().Append(nil, c.state))
				for b.Loop() {
					c.deliver()
				}
				b.ReportMetric(float64(size)/(1<<20), "MiB-state")
				b.ReportMetric(float64(saved)/(1<<20), "MiB-snapshot")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/record")
			})
		}
	}
}
