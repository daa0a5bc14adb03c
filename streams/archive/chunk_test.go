package archive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestYoungRecordsWaitForABurstOfOrders checks the share of a busy processor by the age of the records.
func TestYoungRecordsWaitForABurstOfOrders(t *testing.T) {
	for age, want := range map[time.Duration]float64{
		-time.Hour:          leastShare, // written by a clock that is ahead
		time.Second:         leastShare,
		urgentAge / 2:       0.5,
		urgentAge:           1,
		30 * 24 * time.Hour: 1,
	} {
		require.InDelta(t, want, share(age), 1e-9, age)
	}
}
