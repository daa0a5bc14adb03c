package e2e

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowdSize is how large the crowd is, and how often the venue is killed in the midst of each kind of work: few and once, or
// very many and more often where PERPETUA_TEST_KILLS is set.
func crowdSize() (c crowd, rounds int) {
	if n, err := strconv.Atoi(os.Getenv("PERPETUA_TEST_KILLS")); err == nil && n > 5 {
		return crowd{groups: 6, size: 600}, 4
	}
	return crowd{groups: 2, size: 250}, 1
}

// TestKilledInTheEnginesWork kills a venue while it posts funding, while it posts a settlement, and while it liquidates a
// crowd. Each time it goes on behind the last record, and in the end everybody was told what happened, all of it and once, and
// nothing else.
func TestKilledInTheEnginesWork(t *testing.T) {
	t.Parallel()
	c, rounds := crowdSize()
	m := newMidway(t, c)
	m.heard = audienceAfter(t, len(m.values(t))-1)
	m.heard[0].blind = true // the other broker sees as much of its accounts
	m.instants(t, rounds)
	m.begin()
	m.worked("posting")
	followUp(t, m.venue, m.traders)
	for _, trader := range m.traders { // or their orders would move the mark
		m.must(200, "broker-a", http.MethodDelete, "/v1/customers/"+trader.customer+"/orders", nil)
	}
	m.waves(t, rounds)
	m.listen()
	checkAll(t, m.desk, m.heard, m.traders...)
}

// struck kills the venue when it is in the middle of its work, and has the listeners take down what they were told.
func (m *midway) struck(strike func(kill func())) {
	m.t.Helper()
	strike(m.kill)
	for _, l := range m.heard {
		l.ended()
	}
}

// listen has the listeners go on.
func (m *midway) listen() {
	m.t.Helper()
	for _, l := range m.heard {
		l.connect(m.venue)
	}
}

// settles is the hour of settlements, in UTC.
const settles = 8

// instants kills the venue in the middle of the postings of funding, so many times, and then in those of settlements, which
// fall on the same instants as funding. The clock is brought before the next instant each time, where the start has to go on
// with the postings of the last. An instant that was posted before the kill came does not count.
func (m *midway) instants(t *testing.T, rounds int) {
	t.Helper()
	instant := time.Now().UTC().Truncate(time.Hour)
	for _, settling := range []bool{false, true} {
		for done, tries := 0, 0; done < rounds; tries++ {
			if tries == 5*rounds {
				t.Fatalf("the venue was killed in the middle of %d instants of %d", done, tries)
			}
			for instant = instant.Add(time.Hour); (instant.Hour() == settles) != settling; {
				instant = instant.Add(time.Hour)
			}
			m.beginBefore(instant)
			if m.killAtInstant(t, instant) {
				done++
			}
		}
	}
}

// killAtInstant kills the venue, which was started before an instant, in the middle of its postings, while traders place
// orders: so records are handed to the log as they are decided, and not many at once. It reports whether it was in the middle.
func (m *midway) killAtInstant(t *testing.T, instant time.Time) bool {
	t.Helper()
	m.worked("posting")
	m.quote()
	m.listen()
	followUp(t, m.venue, m.traders)
	some := 1 + m.random.IntN(m.crowd.accounts()/64/3)
	vain := unpaid(instant)
	if instant.Hour() == settles { // and a settlement is posted in any case
		vain = nil
	}
	strike := m.gate.arm(m.venue, some, "posting", postings(instant), vain) // from here on an answer may not come
	m.took = time.Since(m.began)
	var done atomic.Int64
	var working sync.WaitGroup
	problems := make(chan error, len(m.traders))
	for _, trader := range m.traders {
		working.Go(func() { problems <- trader.trade(int(instant.Unix()), &done, nil) })
	}
	m.struck(strike)
	working.Wait()
	close(problems)
	for err := range problems {
		if err != nil {
			t.Fatal(err)
		}
	}
	posted := m.terms(t, postings(instant))
	t.Logf("%v: killed after %d orders and %v records of postings, where %d were enough", stamp(instant), done.Load(), posted, some)
	return len(posted) > 0 && posted[0] < m.crowd.accounts()/64
}

// waves kills the venue in the middle of liquidating one group after the other.
func (m *midway) waves(t *testing.T, rounds int) {
	t.Helper()
	for done, group := 0, 0; done < rounds; group++ {
		if group == m.crowd.groups {
			t.Fatalf("the venue was killed in the middle of %d waves of %d", done, group)
		}
		m.listen()
		liquidations := steps("liquidation", len(m.values(t))-1)
		some := 1 + m.random.IntN(m.crowd.size/2)
		strike := m.gate.arm(m.venue, some, "liquidation", liquidations, nil)
		m.crowd.crash(m.desk, group, func() { m.struck(strike) })
		m.begin()
		m.worked("liquidation", "insurance_order")
		counts := m.terms(t, liquidations)
		t.Logf("group %d: by term there were %v records of liquidations, where %d were enough to kill", group, counts, some)
		if len(counts) > 1 {
			done++
		}
	}
}
