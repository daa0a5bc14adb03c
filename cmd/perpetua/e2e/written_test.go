package e2e

import (
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// readsWait is how long a read waits for what its user has written.
const readsWait = 2 * time.Second

// written holds, for each journal, the last write that a venue answered.
type written struct {
	mu   sync.Mutex
	last map[string]write
}

type write struct {
	user     string
	sequence int64
}

// note keeps the position of the answer to a write.
func (w *written) note(user string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range a.positions() {
		if p.Sequence > w.last[p.Journal].sequence {
			w.last[p.Journal] = write{user, p.Sequence}
		}
	}
}

// missing reports whether the answer to a read rightly lacks a write: one of another user, for which it does not wait, or one of its
// user that was not there within readsWait. An answer that lacks a write of its user and did not wait for it is wrong.
func (w *written) missing(user string, a answer, took time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range a.positions() {
		if last := w.last[p.Journal]; p.Sequence < last.sequence && (last.user != user || took >= readsWait) {
			return true
		}
	}
	return false
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
