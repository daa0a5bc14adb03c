package webhooks

import (
	"fmt"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

const (
	maxRetries = 100 // limit of the rules
	maxWait    = 365 * 24 * time.Hour
)

// ParseSchedule parses the delays before retries, like 5s,5m,2h. It returns the default schedule for "".
func ParseSchedule(list string) (webhook.Schedule, error) {
	if list == "" {
		return webhook.DefaultSchedule(), nil
	}
	var s webhook.Schedule
	for _, text := range strings.Split(list, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || d < time.Millisecond || d > maxWait {
			return nil, fmt.Errorf("%q is not a wait from 1ms to 8760h, like 5s", text)
		}
		s = append(s, scalar.Time(d.Microseconds()))
	}
	if len(s) > maxRetries {
		return nil, fmt.Errorf("%d waits are more than %d", len(s), maxRetries)
	}
	return s, nil
}
