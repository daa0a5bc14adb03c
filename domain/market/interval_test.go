package market

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Candles of every interval begin on its multiples since midnight UTC, and each interval is made of whole shorter ones:
// rows of one are summed up to rows of the next.
func TestIntervals(t *testing.T) {
	at := scalar.TimeOf(time.Date(2026, 3, 31, 23, 59, 59, 999_999_000, time.UTC))
	want := map[string]string{"1m": "23:59", "5m": "23:55", "15m": "23:45", "1h": "23:00", "4h": "20:00", "1d": "00:00"}
	shorter := Interval(1)
	for _, i := range Intervals() {
		if got := i.Start(at).Std().Format("15:04"); got != want[i.String()] {
			t.Errorf("%v begins at %s, want %s", i, got, want[i.String()])
		}
		if i.Start(i.Start(at)) != i.Start(at) || i.Start(at)+i.Span() <= at {
			t.Errorf("%v: the candle that begins at %v does not hold %v", i, i.Start(at), at)
		}
		if i%shorter != 0 || i == shorter {
			t.Errorf("%v is not made of whole %v", i, shorter)
		}
		if back, ok := ParseInterval(i.String()); !ok || back != i {
			t.Errorf("%v is read as %v", i, back)
		}
		shorter = i
	}
	for _, name := range []string{"", "1M", "2m", "60", "1w"} {
		if i, ok := ParseInterval(name); ok {
			t.Errorf("%q is read as %v", name, i)
		}
	}
}
