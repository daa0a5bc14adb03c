package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/tools"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// midway is a venue with a crowd of accounts, for each of which the engine has work to do at one moment: very many records.
// It is killed as soon as the log holds some of them, and goes on behind them when it is started again.
type midway struct {
	*desk
	crowd  crowd
	random *rand.Rand
	gate   *gate
	base   []string      // the environment without a clock
	began  time.Time     // the last start
	took   time.Duration // from there until it was ready, or if it was to be killed at an instant, until all was set for that
	heard  []*listener
	// traders are clients that place orders meanwhile.
	traders []*client
}

// newMidway starts a venue, has it make its users and instruments, and fills its log with a crowd.
func newMidway(t *testing.T, c crowd) *midway {
	t.Helper()
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	// Snapshots are made on the way, so that most starts are from one in the middle of the work.
	m := &midway{desk: &desk{venue: newVenue(t, "--snapshot-records", "500", "--accept-clock")}, crowd: c, random: rand.New(rand.NewPCG(seed, 1))}
	m.gate = newGate(t, someBrokers(t))
	m.env = append(m.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(m.gate.seeds, ","), "PERPETUA_COMPRESSION=none")
	m.base = m.env
	for i := range traders {
		trader := newClient(seed, i)
		trader.venue = func() *venue { return m.venue }
		m.traders = append(m.traders, trader)
	}
	t.Cleanup(func() { m.stop() })
	m.begin()
	m.stop()
	began := time.Now()
	m.fill(t, c.opening())
	t.Logf("%d accounts are there after %v", c.accounts(), time.Since(began).Round(time.Millisecond))
	return m
}

// begin starts the venue and takes the time.
func (m *midway) begin() {
	m.t.Helper()
	m.began = time.Now()
	m.start()
	m.took = time.Since(m.began)
}

// beginBefore starts the venue with a clock that is ahead, so that an instant comes soon after all is set for it. Instants
// must rise: time does not go back.
func (m *midway) beginBefore(instant time.Time) {
	m.t.Helper()
	soon := 2*m.took + 2*time.Second
	ahead := time.Until(instant.Add(-soon))
	m.env = append(m.base[:len(m.base):len(m.base)], altered.ClockAhead+"="+ahead.String())
	m.begin()
}

// openLog opens the trading journal of the venue, running or stopped.
func (v *venue) openLog(t testing.TB) (*journal.Client, func()) {
	t.Helper()
	environment := func(name string) (string, bool) {
		for _, pair := range slices.Backward(v.env) {
			if value, is := strings.CutPrefix(pair, name+"="); is {
				return value, true
			}
		}
		return os.LookupEnv(name)
	}
	s, err := settings.Parse("test", []string{"--data", v.dir, "--topic-prefix", v.prefix}, settings.IO{Env: environment}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, done, err := tools.OpenLog(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return client, done
}

// values returns the valid records of the trading journal, of a venue that runs or not.
func (v *venue) values(t testing.TB) (values [][]byte) {
	t.Helper()
	client, done := v.openLog(t)
	defer done()
	reader := journal.NewReader(client, trading.Rules(), 0, record.Before)
	defer reader.Close()
	err := reader.ToTip(t.Context(), func(entries []record.Entry) error {
		for _, e := range entries {
			values = append(values, e.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// watch reads the trading journal as any Kafka client does, and counts the records that are part of some work.
type watch struct {
	t      testing.TB
	client *kgo.Client
	is     func(value []byte) bool
	vain   func(value []byte) bool // recognizes what says that there will be no such work; nil for nothing
	seen   int
	ended  bool // there will be none
	last   []byte
}

// watch begins with what the log of the running venue holds already.
func (v *venue) watch(is, vain func(value []byte) bool) *watch {
	v.t.Helper()
	topic := v.prefix + "trading"
	client, err := kgo.NewClient(kgo.SeedBrokers(v.Kafka...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		v.t.Fatal(err)
	}
	w := &watch{t: v.t, client: client, is: is, vain: vain}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		v.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	for at := int64(0); at < end.Offset; {
		at = w.poll(ctx)
	}
	return w
}

// poll waits for more of the log, unless it is canceled, and returns the offset behind it.
func (w *watch) poll(ctx context.Context) (next int64) {
	fetches := w.client.PollFetches(ctx)
	if err := fetches.Err(); err != nil && ctx.Err() != context.Canceled {
		w.t.Fatalf("reading the log, after %d records of the work: %v; the last: %.600s", w.seen, err, w.last)
	}
	fetches.EachRecord(func(r *kgo.Record) {
		next, w.last = r.Offset+1, r.Value
		if w.is(r.Value) {
			w.seen++
		}
		w.ended = w.ended || w.vain != nil && w.vain(r.Value)
	})
	return next
}

// until waits until the log holds so many records of the work, or there will be none, or enough is closed.
func (w *watch) until(n int, enough <-chan struct{}) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		select {
		case <-enough:
			cancel()
		case <-ctx.Done():
		}
	}()
	for w.seen < n && !w.ended {
		select {
		case <-enough:
			return
		default:
			w.poll(ctx)
		}
	}
}

func (w *watch) close() { w.client.Close() }

// arm returns a function that kills a venue in the middle of some work: when the log holds at most so many records of it. Where
// the work has begun before, it kills when there are so many in all, and where the log says that there will be none, at once.
func (g *gate) arm(v *venue, n int, work string, is, vain func(value []byte) bool) (strike func(kill func())) {
	v.t.Helper()
	closed := g.closeAfter(n, work)
	w := v.watch(is, vain) // after the gate has begun to count: what that has not counted is seen here at once
	return func(kill func()) {
		v.t.Helper()
		w.until(n, closed)
		kill()
		w.close()
		g.open()
	}
}

// stepFor is what the records hold that the engine writes for a kind of work.
func stepFor(work string) []byte {
	return []byte(`"type":"engine.step","version":1,"data":{"work":"` + work + `"}`)
}

// steps recognizes the records of the engine's that do a kind of work, after a record.
func steps(work string, after int, words ...string) func(value []byte) bool {
	mark := stepFor(work)
	return func(value []byte) bool {
		var sequence int
		if _, err := fmt.Sscanf(string(value[:min(len(value), 40)]), `{"sequence":%d,`, &sequence); err != nil || sequence <= after || !bytes.Contains(value, mark) {
			return false
		}
		for _, word := range words {
			if !bytes.Contains(value, []byte(word)) {
				return false
			}
		}
		return true
	}
}

// unpaid recognizes that an instant of funding costs nobody anything.
func unpaid(instant time.Time) func(value []byte) bool {
	at := []byte(`"timestamp":"` + stamp(instant) + `"`)
	return func(value []byte) bool {
		return bytes.Contains(value, []byte(`"type":"funding.fixed"`)) && bytes.Contains(value, at) &&
			bytes.Contains(value, []byte(`{"symbol":"`+bitcoin+`","funding_rate":"0.00000000"`))
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// postings recognizes the records in which an instant is posted.
func postings(instant time.Time) func(value []byte) bool {
	return steps("posting", 0, `"timestamp":"`+stamp(instant)+`"`)
}

// terms counts the records of some work in the venue's log, by the terms that have any.
func (v *venue) terms(t testing.TB, is func(value []byte) bool) (counts []int) {
	t.Helper()
	n := 0
	for _, value := range v.values(t) {
		if n > 0 && bytes.Contains(value, []byte(`"type":"journal.taken"`)) {
			counts, n = append(counts, n), 0
		}
		if is(value) {
			n++
		}
	}
	if n > 0 {
		counts = append(counts, n)
	}
	return counts
}

// worked waits until nothing of some kinds of work is due.
func (d *desk) worked(kinds ...string) {
	d.t.Helper()
	waitForWord(d.t, "the engine's work to be done", func() string {
		var due struct {
			Items []struct{ Entry string }
		}
		d.must(200, "operator", http.MethodGet, "/admin/v1/due?size=100", nil).decode(d.t, &due)
		for _, e := range due.Items {
			for _, kind := range kinds {
				if strings.HasPrefix(e.Entry, kind+"/") {
					return e.Entry
				}
			}
		}
		return ""
	})
}

// checkAll holds what everybody was told and answered, the rows and the money against the log, and the log against the rules.
func checkAll(t *testing.T, d *desk, heard []*listener, traders ...*client) fromLog {
	t.Helper()
	lines := d.records("trading")
	records := parseLog(t, lines)
	told := tell(records)
	for _, l := range heard {
		l.check(t, told)
	}
	replay(t, d.venue, heard)
	log := foldLines(t, lines)
	log.holds(t, traders)
	log.compare(t, d.venue)
	conserved(t, records, log)
	if out, err := d.command("audit").CombinedOutput(); err != nil {
		t.Errorf("the audit: %v\n%s", err, out)
	}
	return told
}

// conserved adds everything up: what each record posts, all accounts, both sides of all positions.
func conserved(t *testing.T, records []logged, log *folded) {
	t.Helper()
	number := func(text string) decimal.Decimal {
		if text == "" { // of an account that never had anything
			return decimal.Zero
		}
		return decimal.RequireFromString(text)
	}
	for _, r := range records {
		sum := decimal.Zero
		for _, e := range r.Events {
			for _, p := range e.Data.postings {
				sum = sum.Add(number(p["amount"]))
			}
		}
		if !sum.IsZero() {
			t.Errorf("the postings of record %d sum to %s", r.Sequence, sum)
		}
	}
	money, contracts, costs := decimal.Zero, make(map[string]decimal.Decimal), number(log.balances[":clearing"])
	for _, balance := range log.balances {
		money = money.Add(number(balance))
	}
	for key, held := range log.positions {
		amount, cost, _ := strings.Cut(held, " for ")
		_, symbol, _ := strings.Cut(key, "/")
		contracts[symbol], costs = contracts[symbol].Add(number(amount)), costs.Add(number(cost))
	}
	for symbol, amount := range contracts {
		if !amount.IsZero() {
			t.Errorf("all positions on %s sum to %s", symbol, amount)
		}
	}
	if !money.IsZero() || !costs.IsZero() || !number(log.balances[":funding"]).IsZero() {
		t.Errorf("all money sums to %s, all costs to %s, %s of funding is left", money, costs, log.balances[":funding"])
	}
}
