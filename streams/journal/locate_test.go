package journal

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// noisy lays out a log of valid records with records to skip among them: some that do not parse, copies of earlier ones, and
// what an owner that was fenced had in flight, whose sequences are ahead. It returns the positions of the valid ones.
func noisy(random *rand.Rand, n int) (values [][]byte, valid []record.Position) {
	genesis := &record.Genesis{Journal: "notes", JournalID: scalar.ID{5}, Partitions: 1}
	var prev record.Hash
	add := func(v []byte) { values = append(values, v) }
	for sequence := range int64(n) {
		var v []byte
		if sequence == 0 {
			v = recordtest.Link(0, prev, genesis)
		} else {
			v = recordtest.Link(sequence, prev, &recordtest.Note{Text: fmt.Sprint(sequence)})
		}
		valid = append(valid, record.Position{Offset: int64(len(values)), Sequence: sequence, Hash: sha256.Sum256(v)})
		prev = sha256.Sum256(v)
		add(v)
		for random.IntN(10) == 0 {
			switch random.IntN(3) {
			case 0:
				add([]byte("no record"))
			case 1:
				add(values[random.IntN(len(values))])
			case 2:
				for ahead := range int64(random.IntN(20)) {
					add(recordtest.Link(sequence+ahead+1, record.Hash{7}, &recordtest.Note{Text: "in flight"}))
				}
			}
		}
	}
	return values, valid
}

// TestARecordIsFoundByItsSequence looks for every record of logs with noise in them, from hints that are good, bad and
// senseless, with one batch a fetch, and then for its first copy. The hundreds of batches in which a copy may lie are fetched
// one by one only for a record that has copies.
func TestARecordIsFoundByItsSequence(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 2))
		c, err := NewClient(Config{Brokers: fake.ListenAddrs(), Prefix: fmt.Sprint("seed", seed, "-")})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.EnsureTopics(t.Context(), "notes"); err != nil {
			t.Fatal(err)
		}
		values, valid := noisy(random, 300)
		kc, err := c.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer kc.Close()
		for _, v := range values {
			if err := kc.ProduceSync(t.Context(), &kgo.Record{Topic: c.Topic("notes"), Value: v}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		l, err := c.locator(t.Context(), "notes", 0)
		if err != nil {
			t.Fatal(err)
		}
		missed, copies := 0, make(map[record.Hash]int)
		for _, v := range values {
			copies[sha256.Sum256(v)]++
		}
		for _, p := range valid {
			want := p.Offset
			p.Offset = []int64{want, want + 3, want - 2, 1 << 40, -5, 0}[random.IntN(6)]
			l.bytes = 1
			offset, found, err := l.search(t.Context(), p, p.Sequence, int64(len(values)))
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				missed++
				continue
			}
			if copies[p.Hash] == 1 {
				l.bytes = 4 << 10
			}
			if offset, err = l.firstCopy(t.Context(), p, p.Sequence, offset); err != nil || offset != want {
				t.Errorf("seed %d: %v is at offset %d, and found at %d: %v", seed, p, want, offset, err)
			}
		}
		if missed > len(valid)/4 { // a whole scan finds them, but shall not have to
			t.Errorf("seed %d: %d of %d were not found by their sequence", seed, missed, len(valid))
		}
		t.Logf("seed %d: %d of %d left to a scan", seed, missed, len(valid))
		other := valid[150]
		other.Hash[0]++
		if _, found, err := l.search(t.Context(), other, other.Sequence, int64(len(values))); found || err != nil {
			t.Errorf("what is not there: %v %v", found, err)
		}
	}
}

// TestAGoodHintCostsOneSmallFetch: thousands of positions are looked for at the start on a long log.
func TestAGoodHintCostsOneSmallFetch(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	c, err := NewClient(Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.EnsureTopics(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	values, valid := noisy(rand.New(rand.NewPCG(1, 2)), 300)
	kc, err := c.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer kc.Close()
	var batch []*kgo.Record
	for _, v := range values {
		batch = append(batch, &kgo.Record{Topic: c.Topic("notes"), Value: v})
	}
	if err := kc.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	l, err := c.locator(t.Context(), "notes", 0)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var fetched []int32 // the limits of the fetches
	fake.ControlKey(kmsg.Fetch.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		fetched = append(fetched, r.(*kmsg.FetchRequest).MaxBytes)
		return nil, nil, false
	})
	for _, tt := range []struct {
		away int64 // of the hint
		want []int32
	}{{0, []int32{hintBytes}}, {2, []int32{hintBytes, stretchBytes}}} {
		mu.Lock()
		fetched = nil
		mu.Unlock()
		p := valid[200]
		p.Offset -= tt.away
		offset, found, err := l.search(t.Context(), p, 0, int64(len(values)))
		mu.Lock()
		if err != nil || !found || offset != valid[200].Offset || !slices.Equal(fetched, tt.want) {
			t.Errorf("%d away: at %d, %v, %v, after fetches of %v bytes, want %v", tt.away, offset, found, err, fetched, tt.want)
		}
		mu.Unlock()
	}
}
