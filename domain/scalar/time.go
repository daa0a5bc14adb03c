package scalar

import (
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Time is an instant in microseconds since 1970-01-01 UTC. Its text form is always 2006-01-02T15:04:05.000000Z. The zero
// Time means none.
type Time int64

// TimeLayout is the text form of every timestamp in the log and in the interfaces.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// Common durations in microseconds.
const (
	Microsecond Time = 1
	Millisecond Time = 1000 * Microsecond
	Second      Time = 1000 * Millisecond
	Minute      Time = 60 * Second
	Hour        Time = 60 * Minute
	Day         Time = 24 * Hour
)

var errTime = errors.New("not a timestamp of the form " + TimeLayout)

// TimeOf returns t truncated to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// ParseTime parses the text form.
func ParseTime(s string) (Time, error) {
	var t Time
	return t, t.UnmarshalText([]byte(s))
}

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// IsZero reports whether t is the zero Time.
func (t Time) IsZero() bool { return t == 0 }

// Canonical reports whether decoding the text form of t gives t: its year is in the range 1970 to 9999.
func (t Time) Canonical() bool { return t >= 0 && t < year10000 }

// String returns the text form.
func (t Time) String() string {
	text, _ := t.AppendText(make([]byte, 0, len(TimeLayout))) // it never fails
	return string(text)
}

// AppendText appends the text form. It implements encoding.TextAppender.
//
// Each record and order contains several timestamps, so this function formats the years 1970 to 9999 without package
// time. Other years use package time.
func (t Time) AppendText(b []byte) ([]byte, error) {
	if t < 0 || t >= year10000 {
		return t.Std().AppendFormat(b, TimeLayout), nil
	}
	year, month, day := civil(int64(t / Day))
	second, fraction := int64(t/Second%(24*60*60)), int64(t%Second)
	text := [len(TimeLayout)]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 26: 'Z'}
	twoDigits(&text, 0, year/100)
	twoDigits(&text, 2, year%100)
	twoDigits(&text, 5, month)
	twoDigits(&text, 8, day)
	twoDigits(&text, 11, second/3600)
	twoDigits(&text, 14, second/60%60)
	twoDigits(&text, 17, second%60)
	twoDigits(&text, 20, fraction/10_000)
	twoDigits(&text, 22, fraction/100%100)
	twoDigits(&text, 24, fraction%100)
	return append(b, text[:]...), nil
}

const year10000 = Time(253_402_300_800) * Second

// civil returns the date that is a number of days after 1970-01-01. It counts in eras of 400 years that begin in March.
func civil(days int64) (year, month, day int64) {
	days += 719_468 // since 0000-03-01
	era := days / 146_097
	ofEra := days % 146_097
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36_524 - ofEra/146_096) / 365
	dayOfYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153 // month, from March
	day = dayOfYear - (153*shifted+2)/5 + 1
	month = (shifted+2)%12 + 1
	year = era*400 + yearOfEra
	if month <= 2 {
		year++
	}
	return year, month, day
}

// twoDigits writes a number below 100 at an index of text.
func twoDigits(text *[len(TimeLayout)]byte, at int, n int64) {
	text[at], text[at+1] = byte('0'+n/10), byte('0'+n%10)
}

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText parses the text form and no other.
func (t *Time) UnmarshalText(b []byte) error {
	if len(b) != len(TimeLayout) || b[19] != '.' { // time.Parse also accepts a comma here
		return errTime
	}
	if v, ok := written(b); ok {
		*t = v
		return nil
	}
	v, err := time.Parse(TimeLayout, string(b))
	if err != nil {
		return errTime
	}
	*t = TimeOf(v)
	return nil
}

// ReadJSON reads the quoted output of AppendText for a time in 1970 or later.
func (t *Time) ReadJSON(r *fastjson.Reader) { *t = Time(r.Moment(moment)) }

func moment(b []byte) (int64, bool) {
	t, ok := written(b)
	return int64(t), ok
}

// written parses the text form of a time in 1970 or later. For every other text, valid or not, ok is false.
func written(b []byte) (t Time, ok bool) {
	if len(b) != len(TimeLayout) || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[19] != '.' || b[26] != 'Z' {
		return 0, false
	}
	bad := false
	number := func(from, to int) int64 {
		n := int64(0)
		for _, c := range b[from:to] {
			bad = bad || c-'0' > 9
			n = n*10 + int64(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second, fraction := number(11, 13), number(14, 16), number(17, 19), number(20, 26)
	if bad || year < 1970 || month < 1 || month > 12 || day < 1 || day > daysOf(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	if month <= 2 {
		year--
	}
	yearOfEra := year % 400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	days := year/400*146_097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719_468
	return Time(days)*Day + Time(hour)*Hour + Time(minute)*Minute + Time(second)*Second + Time(fraction), true
}

// daysOf returns the number of days of a month.
func daysOf(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
