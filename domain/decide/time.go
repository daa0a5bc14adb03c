package decide

import (
	"errors"
	"time"
)

// Time is an instant in microseconds since 1970-01-01 UTC. Its text form is always
// 2006-01-02T15:04:05.000000Z. The zero Time means none.
type Time int64

// TimeLayout is the text form of every timestamp in the log and in the interfaces.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// Microseconds in common spans.
const (
	Microsecond Time = 1
	Millisecond Time = 1000
	Second      Time = 1000 * Millisecond
	Minute      Time = 60 * Second
	Hour        Time = 60 * Minute
	Day         Time = 24 * Hour
)

var errTime = errors.New("not a timestamp of the form " + TimeLayout)

// TimeOf returns t cut to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// ParseTime reads the one text form.
func ParseTime(s string) (Time, error) {
	var t Time
	return t, t.UnmarshalText([]byte(s))
}

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// IsZero reports whether t is none.
func (t Time) IsZero() bool { return t == 0 }

// String returns the text form.
func (t Time) String() string { return t.Std().Format(TimeLayout) }

// AppendText appends the text form. It implements encoding.TextAppender.
func (t Time) AppendText(b []byte) ([]byte, error) { return t.Std().AppendFormat(b, TimeLayout), nil }

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText reads the text form and no other.
func (t *Time) UnmarshalText(b []byte) error {
	if len(b) != len(TimeLayout) || b[19] != '.' { // time.Parse takes a comma there too
		return errTime
	}
	v, err := time.Parse(TimeLayout, string(b))
	if err != nil {
		return errTime
	}
	*t = TimeOf(v)
	return nil
}
