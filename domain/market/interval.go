package market

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// Interval is the length of a candle in seconds. Candles start at whole multiples of it since 1970-01-01 UTC, so daily
// candles start at midnight.
type Interval int

// The intervals of candles. Each is a multiple of the previous one.
const (
	OneMinute      Interval = 60
	FiveMinutes    Interval = 5 * 60
	FifteenMinutes Interval = 15 * 60
	OneHour        Interval = 3600
	FourHours      Interval = 4 * 3600
	OneDay         Interval = 24 * 3600
)

// Intervals returns all intervals, the shortest first.
func Intervals() [6]Interval {
	return [...]Interval{OneMinute, FiveMinutes, FifteenMinutes, OneHour, FourHours, OneDay}
}

// ParseInterval returns the interval with a name.
func ParseInterval(name string) (Interval, bool) {
	for _, i := range Intervals() {
		if i.String() == name {
			return i, true
		}
	}
	return 0, false
}

// String returns the name: 1m, 5m, 15m, 1h, 4h or 1d.
func (i Interval) String() string {
	switch i {
	case OneMinute:
		return "1m"
	case FiveMinutes:
		return "5m"
	case FifteenMinutes:
		return "15m"
	case OneHour:
		return "1h"
	case FourHours:
		return "4h"
	case OneDay:
		return "1d"
	}
	return ""
}

// Span returns the interval as a duration.
func (i Interval) Span() scalar.Time { return scalar.Time(i) * scalar.Second }

// Start returns the start of the candle that contains a time.
func (i Interval) Start(t scalar.Time) scalar.Time { return t - t%i.Span() }
