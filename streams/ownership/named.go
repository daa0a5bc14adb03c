package ownership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// Neighbors asks other nodes of the venue for their terms. An implementation MUST make sure that the answer comes from a
// node of this venue and belongs to this question.
type Neighbors interface {
	// Term asks the node at a URL for its term of a partition. The node's term goroutine MUST answer it. An error means that
	// the goroutine is silent (ErrSilent), that the node runs a build without this request (ErrNoSuchQuestion), or else that the
	// node gave no answer.
	Term(ctx context.Context, url string, q Question) (Term, error)
}

// The errors of a node that answered without a term.
var (
	ErrNoSuchQuestion = errors.New("ownership: the node can't be asked for its terms")
	ErrSilent         = errors.New("ownership: the goroutine of the node's term is silent")
)

// Question asks a node for its term of a partition.
type Question struct {
	Journal    string
	Partition  int32
	Engine     string // id of the engine that monitors the term for silence; "" for any other question
	LastAnswer int64  // Stamp of the last answer to such a question that this engine has received; 0 for none
}

// Term is a node's answer about its term of a partition.
type Term struct {
	Stamp   int64  // for Question.LastAnswer
	Log     string // identity of its log, as journal.Client.LogID returns it; "" if unknown
	Serving bool   // whether it has a valid term; if not, Standing is empty
	term.Standing
}

// named is the last owner of a partition that this node has read of in the log.
//
// A name in the log is not enough. A log may be a copy of another one, and names the owner of that one: commands sent there
// would change a venue that this node does not belong to. So a name counts only while one of these holds:
//
//   - The named node has confirmed that it serves this very log: its term goroutine answered, and the identity of the log
//     (see journal.Client.LogID), the identity of the journal and, for the same term, the hash of the taken record are those
//     that this node has.
//   - The group of engines has assigned the partition to the same node. The brokers of this log keep the group, so its
//     assignment is used whenever a name in the log does not count.
//
// Once confirmed, a name stays good until a later taken record, or until the named node says that it is not the owner or
// can't be reached. No other event ends it: whether the brokers answer does not matter.
type named struct {
	term    int64
	url     string
	hash    record.Hash // of the taken record; zero if it was not read but came with a snapshot
	journal scalar.ID   // zero in the same case

	confirmed time.Time // when the node last confirmed the name; zero if it has not since doubted
	foreign   bool      // the node serves another log
	failing   time.Time // since when requests to the node have failed
	doubted   time.Time // when one of them last began a pause
}

// Read passes the finder a record of a journal's log. It MUST be called with every record that this node reads, in order. It
// never blocks.
func (f *Finder) Read(name string, partition int32, e record.Entry) {
	taken, ok := e.Record.Events[0].(*record.TermStarted)
	if !ok {
		return
	}
	f.learn(submit.Shard{Journal: name, Partition: partition}, named{term: taken.Term, url: taken.URL, hash: e.Position.Hash, journal: e.Journal})
}

// Begin passes the finder the seed that a reading starts from, which may name an owner. It MUST be called before Read.
func (f *Finder) Begin(name string, partition int32, s *record.Seed) {
	if s != nil && s.URL != "" {
		f.learn(submit.Shard{Journal: name, Partition: partition}, named{term: s.Term, url: s.URL, journal: s.Journal})
	}
}

func (f *Finder) learn(p submit.Shard, n named) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.named[p]; old != nil && n.term <= old.term { // a second reader of the same log
		return
	}
	f.named[p] = &n
	f.wake()
}

// confirm asks the node that the log names whether it is the owner, and returns its URL if so.
func (f *Finder) confirm(ctx context.Context, p submit.Shard, n named) error {
	if f.neighbors == nil {
		return errors.New("ownership: no node can be asked")
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	here, err := f.client.LogID(ctx, p.Journal)
	if err != nil {
		return err
	}
	answer, err := f.neighbors.Term(ctx, n.url, Question{Journal: p.Journal, Partition: p.Partition})
	if err != nil {
		f.note(p, n.term, func(n *named) { n.doubt(time.Now()) })
		return err
	}
	switch {
	case answer.Serving && answer.Log == "":
		err = fmt.Errorf("ownership: %s does not know which log of %s/%d it serves", n.url, p.Journal, p.Partition)
		f.note(p, n.term, func(n *named) { n.doubt(time.Now()) })
	case !answer.Serving || answer.Log == here && answer.Term < n.term:
		f.note(p, n.term, func(n *named) { n.confirmed = time.Time{}; n.doubt(time.Now()) })
		err = fmt.Errorf("ownership: %s does not own %s/%d", n.url, p.Journal, p.Partition)
	case n.differs(here, answer):
		err = fmt.Errorf("ownership: %s serves another log of %s/%d", n.url, p.Journal, p.Partition)
		f.note(p, n.term, func(n *named) { n.confirmed, n.foreign = time.Time{}, true })
	default:
		f.note(p, n.term, func(n *named) { n.confirmed, n.failing, n.doubted = time.Now(), time.Time{}, time.Time{} })
		f.mu.Lock()
		f.wake()
		f.mu.Unlock()
	}
	return err
}

// differs reports whether a node's answer is about another log than the one that n was read in, which is here.
func (n *named) differs(here string, t Term) bool {
	switch {
	case t.Log != here:
		return true
	case !n.journal.IsZero() && n.journal != t.Journal:
		return true
	// The node took the partition again, and this node has not read that record yet.
	case t.Term > n.term || n.hash == (record.Hash{}):
		return false
	}
	return n.hash != t.Taken
}

// doubt notes that a request to the node has failed. Other requests that fail during the pause after it do not prolong it:
// many clients may learn of one failure, and the node would never be asked again.
func (n *named) doubt(now time.Time) {
	if n.failing.IsZero() {
		n.failing = now
	}
	if now.Sub(n.doubted) > n.pause() {
		n.doubted = now
	}
}

// pause returns how long the node is not asked after it was doubted: the longer requests have failed, the longer, so that a
// short failure is soon found to be over.
func (n *named) pause() time.Duration {
	return min(max(n.doubted.Sub(n.failing)/pauseShare, retryPause), longestPause)
}

// note applies a change to the named owner of a partition if its term is still the given one.
func (f *Finder) note(p submit.Shard, term int64, change func(*named)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.named[p]; n != nil && n.term == term {
		change(n)
	}
}

// doubt records that the node at a URL said that it does not own the partition, or could not be reached.
func (f *Finder) doubt(p submit.Shard, url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.named[p]; n != nil && n.url == url {
		n.confirmed = time.Time{}
		n.doubt(time.Now())
	}
	if f.urls[p] == url {
		f.urlsAt = time.Time{} // ask the group again
	}
}

// wake wakes all waiters. The caller must hold the lock.
func (f *Finder) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}
