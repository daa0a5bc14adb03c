package webhooks

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

func TestSchedules(t *testing.T) {
	if s, err := ParseSchedule(""); err != nil || !slices.Equal(s, webhook.DefaultSchedule()) {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := ParseSchedule("50ms, 5m,2h"); err != nil || !slices.Equal(s, webhook.Schedule{50 * scalar.Millisecond, 5 * scalar.Minute, 2 * scalar.Hour}) {
		t.Errorf("%v, %v", s, err)
	}
	for _, bad := range []string{"5", "5s,", "-5s", "0s", "9000h", strings.Repeat("1s,", 100) + "1s"} {
		if s, err := ParseSchedule(bad); err == nil {
			t.Errorf("%.20q is read as %v", bad, s)
		}
	}
}
