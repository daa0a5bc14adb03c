package journal

import (
	"errors"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// logAgainAfter is the interval during which a repeated alarm of the rules is counted but not logged.
const logAgainAfter = scalar.Minute

// AlarmOfVerifier raises the alarm of a follower that verifies a journal, and has found a record that no owner writes, or lacks
// records that were trimmed.
func (c *Client) AlarmOfVerifier(journal string, wrong error) {
	c.cfg.Metrics.Alarms.WithLabelValues(journal, alarmVerify).Inc()
	why := "a record is wrong"
	var trimmed *record.TrimmedError
	var base *record.BaseError
	if errors.As(wrong, &trimmed) || errors.As(wrong, &base) {
		why = "it lacks the beginning of the log, which an archive of the venue may have (--archive-url, --archive-key-file)"
	}
	c.cfg.Logger.Error("the journal is followed no further: "+why, "alarm", alarmVerify, "journal", journal, "error", wrong)
}

// repeated is an alarm that was logged recently.
type repeated struct {
	at   scalar.Time // when it was last logged
	more int         // how often it was raised since then
	last []any       // the log arguments of its latest occurrence
}

// alarmOfRules raises an alarm of the rules. A price source with unreadable responses raises the same alarm every
// second, and a wave of liquidations raises it many times in one second. Every occurrence is counted in the metrics, so
// an alert lasts as long as its cause. The log gets the first occurrence immediately, then at most one line a minute
// with the number of repetitions.
func (o *Owner) alarmOfRules(now scalar.Time, alarm decide.Alarm, args ...any) {
	o.countAlarm(alarm.Kind)
	o.logRepeated(now)
	if r, known := o.repeated[alarm]; known {
		r.more++
		r.last = args
		return
	}
	o.repeated[alarm] = &repeated{at: now}
	o.logAlarm(alarm.Kind, alarm.Message, args...)
}

// logRepeated logs the alarms that were raised again and not logged for a minute.
func (o *Owner) logRepeated(now scalar.Time) {
	for alarm, r := range o.repeated {
		switch {
		case now-r.at < logAgainAfter:
		case r.more > 0:
			o.logAlarm(alarm.Kind, alarm.Message, append(r.last, "times", r.more)...)
			*r = repeated{at: now}
		default: // without this the map would grow by one entry for each distinct text
			delete(o.repeated, alarm)
		}
	}
}
