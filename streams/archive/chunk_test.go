package archive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestYoungRecordsWaitForABurstOfOrders checks the share of a busy processor by the age of the records.
func TestYoungRecordsWaitForABurstOfOrders(t *testing.T) {
	for age, want := range map[time.Duration]float64{
		math.MinInt64:       leastShare, // of a time in the far future
		-time.Hour:          leastShare, // written by a clock that is ahead
		time.Second:         leastShare,
		urgentAge / 2:       0.5,
		urgentAge:           1,
		30 * 24 * time.Hour: 1,
		math.MaxInt64:       1, // of no time
	} {
		require.InDelta(t, want, share(age), 1e-9, age)
	}
}
