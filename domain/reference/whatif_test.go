package reference_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// values is a log in memory.
type values [][]byte

func (values) Base(context.Context) (*record.Base, error) { return nil, nil }

func (v values) Open(context.Context) (verify.Batches, error) { return &valueReader{v, 0}, nil }

type valueReader struct {
	all  [][]byte
	next int
}

func (r *valueReader) Next(context.Context) ([]verify.Message, error) {
	if r.next == len(r.all) {
		return nil, io.EOF
	}
	r.next++
	return []verify.Message{{Offset: int64(r.next - 1), Value: r.all[r.next-1]}}, nil
}

func (*valueReader) Close() {}

// keptMarket runs a market around a settlement, by the newest rules, and returns its log.
func keptMarket(t *testing.T, span scalar.Time) values {
	t.Helper()
	morning := scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	v := openVenue(t, 1, morning-span/2)
	v.keeps = true
	c := openCrowd(v, 1, 80, trading.Rules().Newest())
	for c.now < morning+span/2 {
		c.second()
		if !c.calm && c.chance(0.2) {
			c.away(scalar.Time(2+c.random.IntN(90)) * scalar.Second)
			c.rush()
		}
	}
	c.settle()
	c.rareCommands()
	t.Logf("%d records: %+v", len(v.tail), c.auditor.Seen)
	return v.tail
}

// TestTheSameParametersMakeTheSameWorld checks that no decision differs in a random market if no parameter does: neither without an
// override, nor with one to the value that the parameter has. The venue divides steps at random, and changes owners.
func TestTheSameParametersMakeTheSameWorld(t *testing.T) {
	log := keptMarket(t, 40*scalar.Second)
	for _, cumulative := range []bool{false, true} {
		for _, set := range [][]string{nil, {"SOLUSDC_PERP.max_leverage=13", "BTCUSDC_PERP.limit_band=20"}} {
			for _, from := range []int64{0, int64(len(log)) / 2} {
				overrides := whatif.Overrides{}
				for _, s := range set {
					if err := overrides.Set(s); err != nil {
						t.Fatal(err)
					}
				}
				report, err := whatif.Run(t.Context(), whatif.Config{Source: log, Overrides: overrides, From: from, To: -1, Cumulative: cumulative, Differences: 3})
				if err != nil {
					t.Fatalf("cumulative %t, %s from record %d: %v", cumulative, set, from, err)
				}
				if !report.Equal() || len(report.Accounts) > 0 {
					t.Errorf("cumulative %t, %s from record %d: %v, %+v", cumulative, set, from, report.Different, report.Differences)
				}
				if n := report.Same + report.Undecided; n != int64(len(log))-from || len(report.NotRedecidable) > 0 {
					t.Errorf("cumulative %t, %s from record %d: %d of %d records are the same", cumulative, set, from, n, int64(len(log))-from)
				}
			}
		}
	}
}
