package settings

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// HistoryAge returns the age from which earlier versions of rows are dropped, or 0 for never. The error is a usage error.
func (s *Settings) HistoryAge() (time.Duration, error) {
	if age, ok := parseAge(s.History); ok {
		return age, nil
	}
	return 0, Usagef("--history takes days or a time like 400d or 9600h, or 0 for never, not %q", s.History)
}

// parseAge parses days or a time, like 400d or 9600h.
func parseAge(text string) (age time.Duration, ok bool) {
	const day = 24 * time.Hour
	if number, found := strings.CutSuffix(text, "d"); found {
		days, err := strconv.ParseInt(number, 10, 64)
		return time.Duration(days) * day, err == nil && days >= 0 && days <= int64(math.MaxInt64/day)
	}
	age, err := time.ParseDuration(text)
	return age, err == nil && age >= 0
}
