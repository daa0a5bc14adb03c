package node

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestProberChecksTheSessions once, unless they were checked just before, and again after Postgres was away.
func TestProberChecksTheSessions(t *testing.T) {
	for checked, want := range map[bool]int{false: 2, true: 1} {
		t.Run(fmt.Sprintf("checked before: %v", checked), func(t *testing.T) {
			proxy, at := projectiontest.NewProxy(t, projectiontest.VenueURL(t))
			p, err := newProber(t.Context(), projectiontest.Open(t, at), checked)
			if err != nil {
				t.Fatal(err)
			}
			defer p.pool.Close()
			p.probeUntil(t, true)
			p.probe(t.Context(), slog.New(slog.DiscardHandler))
			if opened := proxy.Opened(); opened != want || !p.asked {
				t.Errorf("%d connections at first, want %d; the sessions are checked: %v", opened, want, p.asked)
			}
			proxy.Away(true)
			p.probeUntil(t, false)
			if p.asked {
				t.Error("the sessions of a Postgres that was away are not checked again")
			}
			proxy.Away(false)
			p.probeUntil(t, true)
			if !p.asked {
				t.Error("the sessions are not checked")
			}
		})
	}
}

// probeUntil probes until Postgres answers or does not.
func (p *prober) probeUntil(t *testing.T, answers bool) {
	t.Helper()
	for range 1000 {
		p.probe(t.Context(), slog.New(slog.DiscardHandler))
		if p.away != answers {
			return
		}
	}
	t.Fatalf("Postgres answers: %v", p.away)
}
