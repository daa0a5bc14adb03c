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
//
// A key belongs to the broker and the route. Where only one route makes a type of command, the type stands for the route;
// where several do, the command's fingerprint tells which (OfRoute). Such a key is remembered twice: with its route, and
// without one, as of the route that used it last. The second is for who does not tell routes apart: a node of an older build,
// through which the client may send the same request again while nodes are upgraded.
type Memory struct {
	keys  map[memoryKey]remembered
	queue []expiring // in the order of time, since record times never go back
	head  int

	last  scalar.Time // of the last record
	stood scalar.Time // the time that did not count so far
}

type memoryKey struct{ broker, command, key string }

// on returns the key of a route. No client's own key has an @.
func (k memoryKey) on(route string) memoryKey {
	if route != "" {
		k.key += "@" + route
	}
	return k
}

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
			return Decision{}, false, KeyReused()
		}
	}
	r, found := m.used(now, c)
	if !found {
		return Decision{}, false, nil
	}
	_, then := splitFingerprint(r.fingerprint)
	if _, content := splitFingerprint(c.Kept.Fingerprint); content != then {
		return Decision{}, false, KeyReused()
	}
	return Decision{Repeated: true, Repeat: r.sequence}, true, nil
}

// used returns what a command's key was used for on its route.
func (m *Memory) used(now scalar.Time, c Command) (r remembered, found bool) {
	k := memoryKey{c.Actor.Broker, c.Type, c.Kept.Key}
	route, _ := splitFingerprint(c.Kept.Fingerprint)
	if r, found = m.find(now, k.on(route)); found || route == "" {
		return r, found
	}
	// A build that did not tell routes apart may have decided it. Which route that was on nobody knows: the same request has
	// its answer, and any other is refused, since it could be the same route's.
	r, found = m.find(now, k)
	other, _ := splitFingerprint(r.fingerprint)
	return r, found && other == ""
}

func (m *Memory) find(now scalar.Time, k memoryKey) (remembered, bool) {
	r, found := m.keys[k]
	return r, found && m.Counted(now)-r.time < Remember
}

// Remembers reports whether a broker's key was used for a command of a type, as of the last record.
func (m *Memory) Remembers(broker, command, key string) bool {
	_, found := m.find(m.last, memoryKey{broker, command, key})
	return found
}

// CodeKeyReused is the code of the refusal of a key that was used for another request.
const CodeKeyReused = "IDEMPOTENCY_KEY_REUSED"

// KeyReused is the refusal of a key that was used for another request.
func KeyReused() error {
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
	k, r := memoryKey{c.Actor.Broker, c.Type, c.Kept.Key}, remembered{c.Kept.Fingerprint, at.Sequence, now}
	if route, _ := splitFingerprint(c.Kept.Fingerprint); route != "" {
		m.keep(k.on(route), r)
	}
	m.keep(k, r)
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
