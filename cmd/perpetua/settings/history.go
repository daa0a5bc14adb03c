package settings

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// HistoryAge returns the age from which earlier versions of rows are dropped, or 0 for never. The error is a usage error.
func (s *Settings) HistoryAge() (time.Duration, error) {
	const day = 24 * time.Hour
	if text, found := strings.CutSuffix(s.History, "d"); found {
		if days, err := strconv.ParseInt(text, 10, 64); err == nil && days >= 0 && days <= int64(math.MaxInt64/day) {
			return time.Duration(days) * day, nil
		}
	} else if age, err := time.ParseDuration(s.History); err == nil && age >= 0 {
		return age, nil
	}
	return 0, Usagef("--history takes days or a time like 400d or 9600h, or 0 for never, not %q", s.History)
}
