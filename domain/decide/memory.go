package decide

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// Remember is how long the outcome of a command with an Idempotency-Key is kept.
const Remember = 24 * scalar.Hour

// TypeTaken is the type of the record that opens a term.
const TypeTaken = "journal.taken"

// restart is how much of the time before a term, since the last record, counts for what is remembered.
const restart = scalar.Minute

// Memory remembers which Idempotency-Keys were used, with what request, and in which record they were decided. It
// is part of a state and changes only in Evolve.
//
// It counts time within terms. There, time goes by a monotonic clock; from one term to the next it goes by the wall clock
// of another node or of another day, and one that is days ahead would have every key forgotten at once, and a command that
// is sent again would take effect twice. So of the time before a term no more than a minute counts, however much it is:
// while nobody served, nothing grew old.
type Memory struct {
	keys  map[memoryKey]remembered
	queue []expiring // in the order of time, since record times never go back
	head  int

	last  scalar.Time // of the last record
	stood scalar.Time // the time that did not count so far
}

type memoryKey struct{ broker, command, key string }

type remembered struct {
	fingerprint string
	sequence    int64
	time        scalar.Time // as counted
}

type expiring struct {
	key  memoryKey
	time scalar.Time // as counted
}

// Counted returns a time as it counts for what is remembered for a while: that of a record, or of a decision after it.
func (m *Memory) Counted(t scalar.Time) scalar.Time { return t - m.stood }

// Recall looks a command's key up. It returns a Repeated decision if the same request was decided within the last
// 24 hours, a refusal if the key was used for another request, and ok false if the key is new or there is none.
func (m *Memory) Recall(now scalar.Time, c Command) (d Decision, ok bool, err error) {
	if c.Kept.Key == "" {
		return Decision{}, false, nil
	}
	r, found := m.keys[memoryKey{c.Actor.Broker, c.Type, c.Kept.Key}]
	if !found || m.Counted(now)-r.time >= Remember {
		return Decision{}, false, nil
	}
	if r.fingerprint != c.Kept.Fingerprint {
		return Decision{}, false, &Refusal{Kind: Conflict, Code: "IDEMPOTENCY_KEY_REUSED", Field: "Idempotency-Key",
			Message: "the Idempotency-Key was used for another request within the last 24 hours"}
	}
	return Decision{Repeated: true, Repeat: r.sequence}, true, nil
}

// Note records that the command was decided in the record at the stamp, and forgets what is older than 24 hours.
// It is called for every record from Evolve.
func (m *Memory) Note(at Stamp, c Recorded) {
	if gap := at.Time - m.last; c.Type == TypeTaken && m.last != 0 && gap > restart {
		m.stood += gap - restart
	}
	m.last = at.Time
	now := m.Counted(at.Time)
	for m.head < len(m.queue) && now-m.queue[m.head].time >= Remember {
		old := m.queue[m.head]
		if r, ok := m.keys[old.key]; ok && r.time == old.time {
			delete(m.keys, old.key)
		}
		m.queue[m.head] = expiring{}
		m.head++
	}
	if m.head > 1024 && m.head*2 > len(m.queue) {
		m.queue = append([]expiring(nil), m.queue[m.head:]...)
		m.head = 0
	}
	if c.Kept.Key == "" {
		return
	}
	if m.keys == nil {
		m.keys = make(map[memoryKey]remembered)
	}
	k := memoryKey{c.Actor.Broker, c.Type, c.Kept.Key}
	m.keys[k] = remembered{c.Kept.Fingerprint, at.Sequence, now}
	m.queue = append(m.queue, expiring{k, now})
}

// Len returns how many keys are remembered.
func (m *Memory) Len() int { return len(m.keys) }
