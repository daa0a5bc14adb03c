package decide

import (
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

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
	if name, fingerprint, ok := batchOf(c.Kept.Key); ok {
		// The whole comes first: of another batch with the same key nothing is done, whatever stands at which place.
		if whole, found := m.find(now, memoryKey{c.Actor.Broker, c.Type, name}); found && whole.fingerprint != fingerprint {
			return Decision{}, false, keyReused()
		}
	}
	r, found := m.find(now, memoryKey{c.Actor.Broker, c.Type, c.Kept.Key})
	if !found {
		return Decision{}, false, nil
	}
	if r.fingerprint != c.Kept.Fingerprint {
		return Decision{}, false, keyReused()
	}
	return Decision{Repeated: true, Repeat: r.sequence}, true, nil
}

func (m *Memory) find(now scalar.Time, k memoryKey) (remembered, bool) {
	r, found := m.keys[k]
	return r, found && m.Counted(now)-r.time < Remember
}

// CodeKeyReused is the code of the refusal of a key that was used for another request.
const CodeKeyReused = "IDEMPOTENCY_KEY_REUSED"

func keyReused() error {
	return &Refusal{Kind: Conflict, Code: CodeKeyReused, Field: "Idempotency-Key",
		Message: "the Idempotency-Key was used for another request within the last 24 hours"}
}

// BatchKey is the key of a command that came with others under one Idempotency-Key: it also holds a fingerprint of all of
// them, and the command's place. No client's own key has a slash.
func BatchKey(key, fingerprint string, place int) string {
	return key + "/" + fingerprint + "/" + strconv.Itoa(place)
}

// batchOf returns the name under which a batch is remembered, and its fingerprint, if the key is of a command in one.
func batchOf(key string) (name, fingerprint string, ok bool) {
	name, rest, ok := strings.Cut(key, "/")
	fingerprint, _, _ = strings.Cut(rest, "/")
	return name + "/", fingerprint, ok
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
	m.keep(memoryKey{c.Actor.Broker, c.Type, c.Kept.Key}, remembered{c.Kept.Fingerprint, at.Sequence, now})
	if name, fingerprint, ok := batchOf(c.Kept.Key); ok {
		k := memoryKey{c.Actor.Broker, c.Type, name}
		if _, there := m.find(at.Time, k); !there { // by the first of the batch that left a record
			m.keep(k, remembered{fingerprint, at.Sequence, now})
		}
	}
}

func (m *Memory) keep(k memoryKey, r remembered) {
	m.keys[k] = r
	m.queue = append(m.queue, expiring{k, r.time})
}

// Len returns how many keys are remembered.
func (m *Memory) Len() int { return len(m.keys) }
