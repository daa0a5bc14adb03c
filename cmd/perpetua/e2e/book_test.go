package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// bookMeeting is a book that moves, with those who move it and those who rebuild it.
type bookMeeting struct {
	*bookMover
	updates int // of the book that each reader is to get
	samples int // of the book over REST
	readers []*bookReader

	mu      sync.Mutex
	given   int // commands
	sampled map[int64]uint64
}

// TestBookRebuiltFromASocket: the book that a client rebuilds from its WebSocket is that of the log at each sequence, whether it
// reads the book's stream or everybody's orders, however often it drops the connection and goes on with a new snapshot or behind
// the last message that it had, and whether the venue is stopped or killed meanwhile. So is the book that REST shows.
// PERPETUA_TEST_BOOK_UPDATES sets how many updates the client gets at least that is always there, and the others half of; the
// hundredth part of that is how many books of REST are compared, but 50 at least.
func TestBookRebuiltFromASocket(t *testing.T) {
	t.Parallel()
	updates := int(fromEnvironment(t, "PERPETUA_TEST_BOOK_UPDATES", 1000))
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	m := &bookMeeting{bookMover: newBookMover(t, startVenue(t), seed), updates: updates, samples: max(50, updates/100), sampled: make(map[int64]uint64)}
	m.enroll(seed)
	const most = 40
	for round := range most {
		switch round {
		case 2:
			m.v.kill()
			m.v.start()
		case 6:
			m.v.stop()
			m.v.start()
		}
		if m.round(); m.enough() {
			break
		} else if round == most-1 {
			t.Fatalf("only %d updates and %d samples after %d rounds", m.readers[0].updates, len(m.sampled), most)
		}
	}
	m.check()
}

// enroll makes five readers. One never drops its connection.
func (m *bookMeeting) enroll(seed uint64) {
	for n := range 5 {
		r := &bookReader{name: fmt.Sprint("the stream, ", n), stream: &bookStream{}, stays: m.updates / 40, random: rand.New(rand.NewPCG(seed, uint64(100+n)))}
		if n >= 3 {
			r.name, r.stream = fmt.Sprint("the orders, ", n), &orderStream{}
		}
		if n == 0 {
			r.stays = 0
		}
		m.readers = append(m.readers, r)
	}
}

// round has the book moved for a while, and waits until all readers have all of it.
func (m *bookMeeting) round() {
	m.t.Helper()
	token := m.v.token("broker-a") // before it is shared
	var reading []chan struct{}
	for _, r := range m.readers {
		reading = append(reading, r.round(m.v, token))
	}
	m.move(m.updates/8, m.sample)
	for _, r := range m.readers {
		if err := r.reach(m.marked); err != nil {
			m.t.Fatalf("%s: %v", r.name, err)
		}
	}
	for i, r := range m.readers {
		r.end()
		<-reading[i]
	}
}

// sample is called before each command; now and then it takes down the book that REST shows.
func (m *bookMeeting) sample() error {
	m.mu.Lock()
	m.given++
	due := m.given%max(1, m.updates/m.samples*9/10) == 0
	m.mu.Unlock()
	if !due {
		return nil
	}
	a, err := m.v.try("", http.MethodGet, "/v1/orderbook/"+bitcoin+"?depth=1000", nil)
	if err != nil || a.Status != http.StatusOK {
		return fmt.Errorf("the book over REST: %d %.500s %w", a.Status, a.Body, err)
	}
	var shown struct {
		Sequence   int64
		Bids, Asks []livetest.Level
	}
	if err := json.Unmarshal(a.Body, &shown); err != nil {
		return err
	}
	book, err := newDepth(shown.Bids, shown.Asks)
	if err != nil {
		return fmt.Errorf("the book over REST: %w: %s", err, a.Body)
	}
	if len(book.bids) >= 1000 || len(book.asks) >= 1000 {
		return errors.New("the book is too deep to be shown whole")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, there := m.sampled[shown.Sequence]; there && before != book.digest {
		return fmt.Errorf("REST shows two books at %d", shown.Sequence)
	}
	m.sampled[shown.Sequence] = book.digest
	return nil
}

// enough reports whether the readers have got as many updates as they should; those that were away did not get all.
func (m *bookMeeting) enough() bool {
	for _, r := range m.readers {
		if r.updates < m.updates/2 {
			return false
		}
	}
	return m.readers[0].updates >= m.updates && len(m.sampled) >= m.samples
}

// check holds what all had against the log.
func (m *bookMeeting) check() {
	m.t.Helper()
	last := m.marked
	for _, r := range m.readers {
		last = max(last, r.at) // an order may have expired since, and not everybody have heard of it
	}
	fold := foldBook(m.t, m.v, last, nil)
	books := 0
	for _, r := range m.readers {
		spans := r.stream.had()
		for _, s := range spans {
			if err := fold.check(s); err != nil {
				m.t.Errorf("%s: %v", r.name, err)
			}
			books += len(s.visits)
		}
		if final := spans[len(spans)-1].end; final < m.marked {
			m.t.Errorf("%s: it ended at %d, want %d", r.name, final, m.marked)
		}
		if r.stays > 0 && r.drops < 10 {
			m.t.Errorf("%s: it dropped its connection only %d times", r.name, r.drops)
		}
		m.t.Logf("%s: %d updates, %d connections dropped, %d closed as slow", r.name, r.updates, r.drops, r.slow)
	}
	for sequence, digest := range m.sampled {
		if sequence > last || fold.digests[sequence] != digest {
			m.t.Errorf("the book over REST at %d is not that of the log", sequence)
		}
	}
	if fold.deepest < 40 {
		m.t.Errorf("a book of %d levels shows too little", fold.deepest)
	}
	for _, b := range m.traders {
		if b.done < b.sent/3 {
			m.t.Errorf("%s: only %d of %d commands were done as asked", b.customer, b.done, b.sent)
		}
	}
	m.t.Logf("%d records, %d of which changed the book, of up to %d levels; %d books rebuilt, %d shown by REST", last+1, fold.changed, fold.deepest, books, len(m.sampled))
}
