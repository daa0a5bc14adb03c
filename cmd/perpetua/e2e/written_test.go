package e2e

import (
	"maps"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// writeWait is how long a read waits for what its user has written.
	writeWait = 2 * time.Second
	// lookWait is how long a read waits for what its user has only read.
	lookWait = 500 * time.Millisecond
)

// written holds the positions that a venue has answered: what reads may lack, and what they must wait for.
type written struct {
	mu   sync.Mutex
	last map[string]int64               // sequence of the last write of any user, by journal
	own  map[string]map[string]returned // by user and journal
}

// returned holds the sequences last answered to a user.
type returned struct{ written, read int64 }

func newWritten() *written {
	return &written{last: make(map[string]int64), own: make(map[string]map[string]returned)}
}

// wrote records the answer to a write.
func (w *written) wrote(user string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range a.positions() {
		w.last[p.Journal] = max(w.last[p.Journal], p.Sequence)
		w.record(user, p.Journal, returned{written: p.Sequence})
	}
}

// looked records the answer to a read.
func (w *written) looked(user string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range a.positions() {
		w.record(user, p.Journal, returned{read: p.Sequence})
	}
}

// record raises what was returned to a user. The caller holds the lock.
func (w *written) record(user, journal string, r returned) {
	if user == "" { // reads without a token wait for nothing
		return
	}
	if w.own[user] == nil {
		w.own[user] = make(map[string]returned)
	}
	last := w.own[user][journal]
	w.own[user][journal] = returned{max(last.written, r.written), max(last.read, r.read)}
}

// returnedTo returns what was returned to a user, by journal.
func (w *written) returnedTo(user string) map[string]returned {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.own[user])
}

// lacks reports whether the answer to a read lacks a write and may. An answer without a position that was returned to its user before
// the read is wrong if the read did not wait for it.
func (w *written) lacks(before map[string]returned, a answer, took time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	lacks := false
	for _, p := range a.positions() {
		own := before[p.Journal]
		if p.Sequence < own.written && took < writeWait || p.Sequence < own.read && took < lookWait {
			return false
		}
		lacks = lacks || p.Sequence < w.last[p.Journal]
	}
	return lacks
}

// positions returns the log positions that an answer names.
func (a answer) positions() (all []record.LogPosition) {
	for _, text := range a.Header.Values("X-Log-Position") {
		if p, err := record.ParseLogPosition(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}
