package projections_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// BenchmarkMerge merges 500,000 orders and 500,000 postings of which none, one in a hundred, or all differ, and reports
// how long the comparison took, for which nobody waits, and how long the runners waited.
func BenchmarkMerge(b *testing.B) {
	const fill = `INSERT INTO orders SELECT md5(i::text)::uuid, 'C' || i % 1000, 'alpha', 'BTCUSDC_PERP', 'buy', 'limit', 'filled', false, 1.5, 1.5, NULL, 97500.0,
			65000.5, NULL, NULL, NULL, NULL, 65000.5, 'GTC', NULL, false, false, md5(i::text)::uuid::text, NULL, now(), now(), i, 0, i FROM generate_series(1, 500000) i;
		INSERT INTO venue_postings SELECT i, 0, 'fees', 'trade_fee', 'USDC', 1.5, i, 'BTCUSDC_PERP', NULL, now() FROM generate_series(1, 500000) i`
	for _, part := range []struct {
		name, damage string
	}{
		{"equal", ""}, {"hundredth", "UPDATE orders SET average_fill_price = 1 WHERE created_sequence % 100 = 0; UPDATE venue_postings SET balance = 1 WHERE sequence % 100 = 0"},
		{"all", "UPDATE orders SET average_fill_price = 1; UPDATE venue_postings SET balance = 1"},
	} {
		b.Run(part.name, func(b *testing.B) {
			url := projectiontest.MigratedURL(b)
			live := projectiontest.Open(b, url)
			beside, remove, err := projections.OpenScratch(b.Context(), url, "rebuilt")
			if err != nil {
				b.Fatal(err)
			}
			defer remove()
			for _, sql := range []string{fill, part.damage} {
				if _, err := live.Exec(b.Context(), sql); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := beside.Exec(b.Context(), fill); err != nil {
				b.Fatal(err)
			}
			if _, err := live.Exec(b.Context(), "UPDATE rebuilt.orders n SET created = t.created, updated = t.updated FROM orders t WHERE t.code = n.code; UPDATE rebuilt.venue_postings n SET time = t.time FROM venue_postings t WHERE t.sequence = n.sequence"); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				merge, err := projections.OpenMerge(b.Context(), live, "rebuilt", func(context.Context, map[string]projections.Checkpoint) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				found, err := merge.Compare(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				compared := time.Since(start)
				done, err := merge.Apply(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				merge.Close()
				b.ReportMetric(compared.Seconds(), "s-compare")
				b.ReportMetric(done.Blocked.Seconds(), "s-blocked")
				b.ReportMetric(float64(done.Rows), "rows")
				b.Log(fmt.Sprint(found))
			}
		})
	}
}
