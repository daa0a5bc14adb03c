package journal

import (
	"maps"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// logAgainAfter is how long an alarm that a refusal raises is not logged again.
const logAgainAfter = scalar.Minute

// logged keeps when an alarm was last logged, by what it says.
type logged map[string]scalar.Time

// due reports whether an alarm is to be logged now, and if so keeps that it is.
func (l logged) due(says string, now scalar.Time) bool {
	if last, known := l[says]; known && now-last < logAgainAfter {
		return false
	}
	// What is old says nothing any more. Without this the map would grow with every text that there ever was.
	maps.DeleteFunc(l, func(_ string, last scalar.Time) bool { return now-last >= logAgainAfter })
	l[says] = now
	return true
}

// alarmOfRefusal raises the alarm of a refusal. A source of prices that does not read its answers causes the same one every
// second. Each is counted, so that an alert lasts as long as its cause; the log has one a minute.
func (o *Owner) alarmOfRefusal(now scalar.Time, refusal *decide.Refusal, command scalar.ID) {
	if !o.logged.due(refusal.Alarm+": "+refusal.Message, now) {
		o.countAlarm(refusal.Alarm)
		return
	}
	o.alarm(refusal.Alarm, refusal.Message, "command", command, "code", refusal.Code)
}
