package ownership

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// askMargin allows for clocks that do not run equally fast.
const askMargin = 100 * time.Millisecond

// askers are the other engines that listen to this node's terms, and may remove it from the group once they have received no
// answer for silentAfter. An engine that has never received an answer does not count silence.
//
// An answer may be lost on its way, so to have sent one proves nothing. Each answer has a stamp, its time by this node's
// clock, and the next question repeats the stamp of the last answer that was received.
type askers struct {
	now   func() time.Duration // that of journal.Client.Elapsed
	start time.Duration        // when this process began
	base  int64                // of the stamps; random, so that no stamp of an earlier process is valid

	mu     sync.Mutex
	shards map[submit.Shard]map[string]*asker // by partition and engine id
}

// asker is one engine that listens to one term.
type asker struct {
	lastAnswer   time.Duration // the engine received an answer that was sent at this time or later
	lastQuestion time.Duration // time of its last question
	member       bool          // whether it was seen in the group
}

func newAskers(now func() time.Duration) *askers {
	start := now()
	return &askers{now: now, start: start, base: 1 + rand.Int64N(1<<62) - int64(start), shards: make(map[submit.Shard]map[string]*asker)}
}

// answer returns the stamp of an answer that is about to be sent, or 0 for a question that needs none.
func (a *askers) answer(q Question) (stamp int64) {
	if q.Engine == "" {
		return 0
	}
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	p := submit.Shard{Journal: q.Journal, Partition: q.Partition}
	if a.shards[p] == nil {
		a.shards[p] = make(map[string]*asker)
	}
	lastAnswer, valid := a.sentAt(q.LastAnswer, now)
	e := a.shards[p][q.Engine]
	switch {
	case e == nil && valid:
		e = &asker{lastAnswer: lastAnswer}
	case e == nil: // the engine counts silence from this answer on, if it receives it
		e = &asker{lastAnswer: now}
	case valid && lastAnswer > e.lastAnswer:
		e.lastAnswer = lastAnswer
	}
	e.lastQuestion = now
	a.shards[p][q.Engine] = e
	return a.base + int64(now)
}

// sentAt returns when the answer with a stamp was sent.
func (a *askers) sentAt(stamp int64, now time.Duration) (at time.Duration, valid bool) {
	at = time.Duration(stamp - a.base)
	return at, at >= a.start && at <= now
}

// hold reports whether no engine can have missed the answers about one of these partitions for silentAfter.
func (a *askers) hold(shards []submit.Shard) bool {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range shards {
		for _, e := range a.shards[p] {
			if now-e.lastAnswer >= silentAfter-askMargin {
				return false
			}
		}
	}
	return true
}

// forget drops the askers of a partition that this node no longer owns.
func (a *askers) forget(p submit.Shard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.shards, p)
}

// keep drops the engines that have left the group. An engine that has not joined yet may ask too; it is dropped a session
// after its last question.
func (a *askers) keep(members []member) {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, engines := range a.shards {
		for id, e := range engines {
			switch in := slices.ContainsFunc(members, func(m member) bool { return m.instance != nil && *m.instance == id }); {
			case in:
				e.member = true
			case e.member || now-e.lastQuestion >= session:
				delete(engines, id)
			}
		}
	}
}
