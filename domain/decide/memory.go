package decide

import (
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Remember is how long the outcome of a command with an Idempotency-Key is remembered.
const Remember = 24 * scalar.Hour

// TypeTaken is the type of the record that opens a term.
const TypeTaken = "journal.taken"

// restart is the longest time between the last record of a term and the first of the next that counts toward expiry.
const restart = scalar.Minute

// Memory remembers which Idempotency-Keys were used, with which request, and in which record the command was decided. It
// is part of a state and changes only in Evolve.
//
// Keys expire by the time counted within terms. Within a term, time follows a monotonic clock. From one term to the
// next, it follows the wall clock of another node or of another day. If that clock were days ahead, all keys would
// expire and a repeated command would take effect twice. So at most one minute between two terms counts: keys do not age
// during an outage.
//
// A key belongs to a broker and a route. If one route alone produces a command type, the type identifies the route.
// Otherwise, the fingerprint of the command identifies it (OfRoute). Such a key is remembered twice: with its route, and
// without a route for the route that used it last. The entry without a route serves nodes of an older build that do not
// distinguish routes: during an upgrade, a client may repeat a request through one of them.
type Memory struct {
	keys  map[memoryKey]remembered
	queue []expiring // ordered by time, since record times never decrease
	head  int

	last         scalar.Time // the time of the last record
	excludedTime scalar.Time // the total time that was not counted
}

type memoryKey struct{ broker, command, key string }

// on returns the key of a route. A client's key cannot contain an @.
func (k memoryKey) on(route string) memoryKey {
	if route != "" {
		k.key += "@" + route
	}
	return k
}

type remembered struct {
	fingerprint string
	sequence    int64
	time        scalar.Time // counted time
}

type expiring struct {
	key  memoryKey
	time scalar.Time // counted time
}

// Counted converts the time of a record, or of a decision after it, to the time that counts toward expiry.
func (m *Memory) Counted(t scalar.Time) scalar.Time { return t - m.excludedTime }

// Lookup looks up a command's key. It returns a Repeated decision if the same request was decided within the last 24
// hours. It returns a refusal if the key was used for another request. Otherwise, ok is false: the key is new, or the
// command has none.
func (m *Memory) Lookup(now scalar.Time, c Command) (d Decision, ok bool, err error) {
	if c.Metadata.Key == "" {
		return Decision{}, false, nil
	}
	if name, fingerprint, ok := batchOf(c.Metadata.Key); ok {
		// Compare the batches first: if the key was used for another batch, no command of this one is decided.
		if whole, found := m.find(now, memoryKey{c.Actor.Broker, c.Type, name}); found && whole.fingerprint != fingerprint {
			return Decision{}, false, KeyReused()
		}
	}
	r, found := m.used(now, c)
	if !found {
		return Decision{}, false, nil
	}
	_, then := splitFingerprint(r.fingerprint)
	if _, content := splitFingerprint(c.Metadata.Fingerprint); content != then {
		return Decision{}, false, KeyReused()
	}
	return Decision{Repeated: true, Repeat: r.sequence}, true, nil
}

// used returns the earlier use of a command's key on its route.
func (m *Memory) used(now scalar.Time, c Command) (r remembered, found bool) {
	k := memoryKey{c.Actor.Broker, c.Type, c.Metadata.Key}
	route, _ := splitFingerprint(c.Metadata.Fingerprint)
	if r, found = m.find(now, k.on(route)); found || route == "" {
		return r, found
	}
	// A build that did not distinguish routes may have decided the earlier command, so its route is unknown. The same
	// request gets the remembered answer. Any other request is refused, since it could be one of the same route.
	r, found = m.find(now, k)
	other, _ := splitFingerprint(r.fingerprint)
	return r, found && other == ""
}

func (m *Memory) find(now scalar.Time, k memoryKey) (remembered, bool) {
	r, found := m.keys[k]
	return r, found && m.Counted(now)-r.time < Remember
}

// Remembers implements Facts.
func (m *Memory) Remembers(broker, command, key string) bool {
	_, found := m.find(m.last, memoryKey{broker, command, key})
	return found
}

// CodeKeyReused is the refusal code for a key that was used for another request.
const CodeKeyReused = "IDEMPOTENCY_KEY_REUSED"

// KeyReused returns the refusal of a key that was used for another request.
func KeyReused() error {
	return &Refusal{Kind: Conflict, Code: CodeKeyReused, Field: "Idempotency-Key",
		Message: "the Idempotency-Key was used for another request within the last 24 hours"}
}

// BatchKey returns the key of one command of a batch that came under a single Idempotency-Key. It contains a fingerprint
// of the whole batch and the index of the command. A client's key cannot contain a slash.
func BatchKey(key, fingerprint string, index int) string {
	return key + "/" + fingerprint + "/" + strconv.Itoa(index)
}

// batchOf returns the name under which a batch is remembered and the fingerprint of the batch. ok is false if the key
// does not belong to a command of a batch.
func batchOf(key string) (name, fingerprint string, ok bool) {
	name, rest, ok := strings.Cut(key, "/")
	fingerprint, _, _ = strings.Cut(rest, "/")
	return name + "/", fingerprint, ok
}

// Note remembers the command that was decided in the record at the stamp, and forgets keys after 24 hours of counted
// time. Evolve calls it for every record.
func (m *Memory) Note(at Stamp, c Recorded) {
	if gap := at.Time - m.last; c.Type == TypeTaken && m.last != 0 && gap > restart {
		m.excludedTime += gap - restart
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
	if c.Metadata.Key == "" {
		return
	}
	if m.keys == nil {
		m.keys = make(map[memoryKey]remembered)
	}
	k, r := memoryKey{c.Actor.Broker, c.Type, c.Metadata.Key}, remembered{c.Metadata.Fingerprint, at.Sequence, now}
	if route, _ := splitFingerprint(c.Metadata.Fingerprint); route != "" {
		m.keep(k.on(route), r)
	}
	m.keep(k, r)
	if name, fingerprint, ok := batchOf(c.Metadata.Key); ok {
		k := memoryKey{c.Actor.Broker, c.Type, name}
		if _, there := m.find(at.Time, k); !there { // the first command of the batch that has a record
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
