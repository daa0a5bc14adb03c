package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// wide has the test look ahead on several goroutines, whatever machine it runs on.
func wide(t testing.TB) {
	before := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// history returns the values of a log that is valid throughout: records of both forms, and terms between them.
func history(t testing.TB, n int) (values [][]byte) {
	t.Helper()
	var prev record.Hash
	for i := range n {
		r := &record.Record{Sequence: int64(i), Prev: prev, Time: scalar.Time(1_800_000_000_000_000 + i), Outcome: decide.Accepted,
			Command: decide.Recorded{ID: scalar.ID{1, byte(i >> 8), byte(i)}, Type: "order.place", Actor: decide.Actor{Broker: "alpha"}}}
		o := order.Order{Code: scalar.ID{2, byte(i >> 8), byte(i)}, CustomerCode: "c1", Broker: "alpha", Symbol: "BTCUSDC_PERP", Action: order.Buy,
			Type: order.Limit, Status: order.Open, Amount: fixed.Decimal{Coef: int64(1 + i), Scale: 3}, FilledAmount: fixed.Decimal{Scale: 3},
			LimitPrice: fixed.Decimal{Coef: 650001, Scale: 1}, TimeInForce: order.GTC, Created: r.Time, Updated: r.Time}
		switch {
		case i == 0:
			r.Events = []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{5}, Partitions: 1}}
		case i%9 == 1:
			r.Events = []decide.Event{&record.TermStarted{Term: int64(i/9 + 1), Node: "n"}}
		case i%9 == 5:
			r.Events = []decide.Event{&trading.CustomerRegistered{CustomerCode: fmt.Sprint("c", i), Broker: "alpha", Name: "n", Created: r.Time}}
		case i%9 == 7:
			r.Events = []decide.Event{&trading.OrderOpened{Order: o}, &trading.OrderCanceled{Order: o}}
		default:
			r.Events = []decide.Event{&trading.OrderOpened{Order: o}}
		}
		if i%9 < 2 {
			switch r.Events[0].(type) {
			case *record.Genesis, *record.TermStarted:
				r.Command.Type, r.Command.Actor = r.Events[0].EventType(), decide.Engine
			}
		}
		value, err := record.Encode(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		values, prev = append(values, value), sha256.Sum256(value)
	}
	return values
}

// oneByOne is what the rule of validity makes of values: the reference.
func oneByOne(values [][]byte) (entries []record.Entry, at record.Position, err error) {
	c := record.NewChain(trading.Rules(), 0, record.Before)
	for i, v := range values {
		e, ok, err := c.Admit(int64(i), v)
		if err != nil {
			return entries, c.Position(), err
		}
		if ok {
			entries = append(entries, e)
		}
	}
	return entries, c.Position(), nil
}

// alone is a client without brokers.
func alone(t testing.TB) *Client {
	t.Helper()
	c, err := NewClient(Config{Brokers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// fetched hands the values to a reader as the brokers would: in fetches of a few pieces each, which begin at its position
// as those of a new session do.
func fetched(r *Reader, values [][]byte, random *rand.Rand) (entries []record.Entry, err error) {
	for r.next < int64(len(values)) && err == nil {
		if r.backlog.empty() {
			var records []*kgo.Record
			from, to := max(r.chain.Position().Offset, 0), min(int(r.next)+1+random.IntN(12*r.backlog.piece), len(values))
			for i := int(from); i < to; i++ {
				records = append(records, &kgo.Record{Offset: int64(i), Value: values[i]})
			}
			r.verifying = !r.chain.Position().IsBefore()
			r.backlog.put(records)
		}
		var some []record.Entry
		some, err = r.read()
		err = r.keepFinal(err)
		entries = append(entries, some...)
	}
	return entries, err
}

// checkAhead compares a reader that looks ahead with the rule of validity.
func checkAhead(t testing.TB, c *Client, what string, values [][]byte, piece int, random *rand.Rand) {
	t.Helper()
	want, at, wantErr := oneByOne(values)
	r := NewReader(c, trading.Rules(), 0, record.Before)
	r.backlog.piece = piece
	got, err := fetched(r, values, random)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%s: it ends with %v, and not with %v", what, err, wantErr)
	}
	var broken, wantBroken *record.BrokenRecordError
	if errors.As(err, &broken) && errors.As(wantErr, &wantBroken) && (broken.Offset != wantBroken.Offset || broken.Sequence != wantBroken.Sequence) {
		t.Fatalf("%s: the broken record is %+v, and not %+v", what, broken, wantBroken)
	}
	if !r.Position().Equal(at) || len(got) != len(want) {
		t.Fatalf("%s: %d entries up to %v, and not %d up to %v", what, len(got), r.Position(), len(want), at)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: entry %d is\n%+v\nand not\n%+v", what, i, got[i], want[i])
		}
	}
	if err != nil {
		if more, _, again := r.advance(t.Context(), false); len(more) > 0 || again != err { //nolint:errorlint // the very same
			t.Fatalf("%s: after its end come %d entries and %v", what, len(more), again)
		}
	}
}

// damages are what may be wrong with a value, and what may stand in a log beside those that are right.
var damages = []struct {
	what string
	make func(values [][]byte, at int) [][]byte
}{
	{"nothing", func(v [][]byte, _ int) [][]byte { return v }},
	{"garbage before it", func(v [][]byte, at int) [][]byte { return inserted(v, at, []byte("garbage")) }},
	{"no value before it", func(v [][]byte, at int) [][]byte { return inserted(v, at, nil) }},
	{"it comes twice", func(v [][]byte, at int) [][]byte { return inserted(v, at, v[at]) }},
	{"an old one before it", func(v [][]byte, at int) [][]byte { return inserted(v, at, v[at/2]) }},
	{"a later one before it", func(v [][]byte, at int) [][]byte { return inserted(v, at, v[min(at+3, len(v)-1)]) }},
	{"it is gone", func(v [][]byte, at int) [][]byte { return append(append([][]byte{}, v[:at]...), v[at+1:]...) }},
	{"cut off", func(v [][]byte, at int) [][]byte { return replaced(v, at, v[at][:len(v[at])-2]) }},
	{"a bit of its hash", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`"prev":"`), []byte(`"prev":"0`), 1))
	}},
	{"another prev", func(v [][]byte, at int) [][]byte {
		value := bytes.Clone(v[at])
		value[bytes.Index(value, []byte(`"prev":"`))+12] ^= 1
		return replaced(v, at, value)
	}},
	{"another content", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`"alpha"`), []byte(`"alphb"`), 1))
	}},
	{"another sequence", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`{"sequence":`), []byte(`{"sequence":1`), 1))
	}},
	{"an unknown type", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`"events":[{"type":"`), []byte(`"events":[{"type":"x`), 1))
	}},
	{"a space", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`,"events"`), []byte(`, "events"`), 1))
	}},
	{"another term", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`{"term":`), []byte(`{"term":1`), 1))
	}},
	{"a taken record that is not one", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`"order.place"`), []byte(`"journal.taken"`), 1))
	}},
	{"a genesis that is not one", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`"order.place"`), []byte(`"journal.genesis"`), 1))
	}},
	{"an amount that nobody writes so", func(v [][]byte, at int) [][]byte {
		return replaced(v, at, bytes.Replace(v[at], []byte(`"amount":"0`), []byte(`"amount":"00`), 1))
	}},
}

func inserted(v [][]byte, at int, value []byte) [][]byte {
	return append(append(append([][]byte{}, v[:at]...), value), v[at:]...)
}

func replaced(v [][]byte, at int, value []byte) [][]byte {
	v = append([][]byte{}, v...)
	v[at] = value
	return v
}

// TestLookingAheadChangesNothing damages a log in each of its places, and so in each place of a piece, in every way.
func TestLookingAheadChangesNothing(t *testing.T) {
	wide(t)
	values, c := history(t, 40), alone(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	ends := 0
	for _, d := range damages {
		for at := range values {
			log := d.make(values, at)
			checkAhead(t, c, fmt.Sprintf("%s, at %d", d.what, at), log, 4, random)
			if _, _, err := oneByOne(log); err != nil {
				ends++
			}
		}
	}
	if ends < len(values) {
		t.Errorf("only %d of these logs end their readers", ends)
	}
}

func FuzzLookingAhead(f *testing.F) {
	f.Add(uint64(1), uint16(9), []byte("garbage"), uint16(0), uint8(4))
	f.Add(uint64(2), uint16(30), []byte(`"x"`), uint16(12), uint8(1))
	wide(f)
	values, c := history(f, 60), alone(f)
	f.Fuzz(func(t *testing.T, seed uint64, at uint16, garbage []byte, within uint16, piece uint8) {
		n := int(at) % len(values)
		w := int(within) % len(values[n])
		value := append(append(bytes.Clone(values[n][:w]), garbage...), values[n][min(w+len(garbage), len(values[n])):]...)
		checkAhead(t, c, "changed", replaced(values, n, value), 1+int(piece)%16, rand.New(rand.NewPCG(seed, 2)))
	})
}

// TestABacklogIsTakenInOrder checks the pieces themselves: nothing is left out, nothing comes twice, and no more of it is
// under way than there are processors.
func TestABacklogIsTakenInOrder(t *testing.T) {
	wide(t)
	values := history(t, 60)
	b := newBacklog(trading.Rules().Registry())
	b.piece = 4
	for n := range len(values) + 1 {
		var records []*kgo.Record
		for i, v := range values[:n] {
			records = append(records, &kgo.Record{Offset: int64(i), Value: v})
		}
		for _, plain := range []bool{false, true} {
			b.put(records)
			next := int64(0)
			for !b.empty() {
				took := b.next(plain)
				piece, seen := took.records, took.seen
				if len(piece) == 0 || len(piece) > 4 || (seen != nil) != (!plain && n > 4) || seen != nil && len(seen) != len(piece) {
					t.Fatalf("of %d: %d records, %d of them looked at", n, len(piece), len(seen))
				}
				if b.begun-b.taken > 4 {
					t.Fatalf("%d pieces are under way", b.begun-b.taken)
				}
				for i, k := range piece {
					if k.Offset != next {
						t.Fatalf("of %d: %d comes in the place of %d", n, k.Offset, next)
					}
					if seen != nil && (seen[i].Hash != sha256.Sum256(k.Value) || seen[i].Record == nil || seen[i].Record.Sequence != next) {
						t.Fatalf("of %d: %d was not looked at", n, next)
					}
					next++
				}
			}
			if next != int64(n) {
				t.Fatalf("%d of %d records", next, n)
			}
		}
		b.put(records)
		b.next(false)
		b.drop()
		if !b.empty() || b.workers != nil {
			t.Fatalf("of %d something is left", n)
		}
	}
}

// TestABacklogOfTheHistory: each record comes with what the history stores of it, and its hash is not computed again. Records of the
// topic after it come alone, with a hash of their values.
func TestABacklogOfTheHistory(t *testing.T) {
	wide(t)
	values := history(t, 60)
	b := newBacklog(trading.Rules().Registry())
	b.piece = 4
	var topic []*kgo.Record
	var past []Stored
	for i, v := range values {
		k := &kgo.Record{Offset: int64(i), Value: v}
		topic = append(topic, k)
		past = append(past, Stored{Record: k, Sequence: int64(i), Hash: record.Hash{byte(i), 1}, Plain: i%3 > 0})
	}
	for _, stored := range []bool{true, false, true} {
		for _, plain := range []bool{false, true} {
			if stored {
				b.putStored(past)
			} else {
				b.put(topic)
			}
			next := 0
			for !b.empty() {
				took := b.next(plain)
				if (took.stored != nil) != stored || (took.seen != nil) == plain {
					t.Fatalf("stored: %t, plain: %t: %+v", stored, plain, took)
				}
				for i, k := range took.records {
					if k != topic[next] || stored && took.stored[i] != past[next] {
						t.Fatalf("%d comes in the place of %d", k.Offset, next)
					}
					want := record.Hash(sha256.Sum256(k.Value))
					if stored {
						want = past[next].Hash
					}
					if !plain && took.seen[i].Hash != want {
						t.Fatalf("stored: %t: record %d has the hash %v", stored, next, took.seen[i].Hash)
					}
					next++
				}
			}
			if next != len(values) {
				t.Fatalf("%d of %d records", next, len(values))
			}
		}
	}
}

// TestAPieceIsBounded is about large records, of which a few are as much work as many small ones.
func TestAPieceIsBounded(t *testing.T) {
	b := newBacklog(trading.Rules().Registry())
	size := func(n int) *kgo.Record { return &kgo.Record{Value: make([]byte, n)} }
	for _, c := range []struct {
		records []*kgo.Record
		want    int
	}{
		{nil, 0},
		{[]*kgo.Record{size(1)}, 1},
		{[]*kgo.Record{size(10 * pieceBytes), size(1)}, 1},
		{[]*kgo.Record{size(pieceBytes), size(1)}, 1},
		{[]*kgo.Record{size(pieceBytes / 2), size(pieceBytes / 2), size(1)}, 2},
	} {
		if b.put(c.records); b.cut() != c.want {
			t.Errorf("of %d records %d are a piece, and not %d", len(c.records), b.cut(), c.want)
		}
	}
}
