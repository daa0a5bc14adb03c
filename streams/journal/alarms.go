package journal

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// logAgainAfter is how long an alarm of the rules is not logged again.
const logAgainAfter = scalar.Minute

// repeated is an alarm that was logged lately.
type repeated struct {
	at   scalar.Time // when
	more int         // how often it was raised since
	last []any       // what the log says of the last time
}

// alarmOfRules raises an alarm of the rules. A source of prices that does not read its answers causes the same one every
// second, and a wave of liquidations many of them in one. Each is counted, so that an alert lasts as long as its cause. The log
// has the first at once, and then one a minute that tells how many there were.
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

// logRepeated logs what has been raised again, and for a minute not been logged.
func (o *Owner) logRepeated(now scalar.Time) {
	for alarm, r := range o.repeated {
		switch {
		case now-r.at < logAgainAfter:
		case r.more > 0:
			o.logAlarm(alarm.Kind, alarm.Message, append(r.last, "times", r.more)...)
			*r = repeated{at: now}
		default: // or the map would grow with every text that there ever was
			delete(o.repeated, alarm)
		}
	}
}
