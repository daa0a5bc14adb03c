package term

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// refusedFor is how long commands with a record of a size that the brokers have refused are not accepted. A record that is refused ends
// two terms. It is the time between two checks of the topics.
const refusedFor = 10 * time.Second

// refusedSize is the smallest size of a record that the brokers have refused lately. Every record is within the limit of the rules, so
// a setting of the brokers is wrong, which an operator may correct at any time.
type refusedSize struct {
	bytes int           // 0 if there is none
	until time.Duration // on the monotonic clock
}

// refuses reports whether the brokers have lately refused a record that is not larger.
func (s *refusedSize) refuses(now time.Duration, bytes int) bool {
	if now >= s.until {
		s.bytes = 0
	}
	return s.bytes > 0 && bytes >= s.bytes
}

// noteRefusedSize notes that the brokers have refused a record that they got alone, and raises the alarm.
func (m *Machine) noteRefusedSize(bytes int) {
	if s := &m.size; m.now.Mono >= s.until || bytes < s.bytes {
		s.bytes = bytes
	}
	m.size.until = m.now.Mono + refusedFor
	m.alarm("topic", "the brokers refused a record for its size: set max.message.bytes and segment.bytes of the topic right", "bytes", bytes)
}

// refuseForSize answers a request after the brokers have refused its record, or one that was not larger. Its record is not in the log.
func (m *Machine) refuseForSize(r *Request) {
	if !r.done {
		r.state = abandoned
	}
	m.reply(r, submit.Result{}, &submit.NotAcceptedError{RetryAfter: max(m.size.until-m.now.Mono, time.Second),
		Reason: "the brokers refuse a record of this size, although the journal allows it: a setting of the topic is wrong"})
}
