package live_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sort"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestABookIsOfTheSequenceThatItNames looks at the fold as REST does, over and over while orders come, and holds each
// book against the streamed one of the same sequence.
func TestABookIsOfTheSequenceThatItNames(t *testing.T) {
	x := newExchange(t, live.Limits{QueueMessages: 1 << 16, QueueBytes: 1 << 30}, nil) // nobody is too slow here
	x.submit("A1", trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(btc)})
	x.submit("A1", trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("1000")})
	var begin int64
	for _, code := range []string{"A1", "B1"} {
		x.submit(code, trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Broker: brokerOf(code)})
		begin = x.submit(code, trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 100_000_000 * fixed.Unit})
	}
	if err := x.fold.Wait(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	topic := "orderbook-stream:" + btc
	client := livetest.Dial(t, x.url, x.reader("alpha"))
	client.SubscribeWith(livetest.Request{Args: []string{topic, "orders"}, Data: map[string]bool{"positions": true}})

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var traders, looking sync.WaitGroup
	stop := make(chan struct{})
	seen := make([]map[int64]uint64, 3) // by sequence, a digest of the book that a reader saw there
	looks := make([]int, len(seen))
	for i := range seen {
		seen[i] = make(map[int64]uint64)
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				digest, at := x.look(t)
				if before, again := seen[i][at]; again && before != digest {
					t.Errorf("the book at %d is seen in two states", at)
					return
				}
				seen[i][at] = digest
				looks[i]++
			}
		})
	}
	for i, customer := range []string{"A1", "B1"} {
		traders.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 700 {
				action := []order.Action{order.Buy, order.Sell}[random.IntN(2)]
				x.submit(customer, trading.CommandPlaceOrder, limit(customer, btc, action, fmt.Sprint(1+random.IntN(3)), fmt.Sprint(990+random.IntN(20))))
			}
		})
	}
	traders.Wait()
	last := x.submit("A1", trading.CommandPlaceOrder, limit("A1", btc, order.Sell, "1", "1100"))
	if err := x.fold.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	close(stop)
	looking.Wait()
	at := fmt.Sprintf("trading/0@%d", last)
	client.Next("the last change", func(m livetest.Message) bool { return m.Channel == topic && m.Fields()["position"] == at })

	sequences, digests := streamed(t, client.On(topic))
	compared := 0
	for i := range seen {
		for sequence, digest := range seen[i] {
			n := sort.Search(len(sequences), func(n int) bool { return sequences[n] > sequence })
			if n == 0 {
				continue // before the subscription
			}
			if compared++; digests[n-1] != digest {
				t.Errorf("at %d the fold's book is another than the streamed one of %d", sequence, sequences[n-1])
			}
		}
	}
	t.Logf("%v looks, %d books compared", looks, compared)
	if compared < 10 {
		t.Errorf("only %d books were compared", compared)
	}
}

// look takes a book and its sequence together, as an answer of REST does.
func (x *exchange) look(t *testing.T) (digest uint64, sequence int64) {
	x.fold.View(func(s decide.State, at record.Position) {
		book := newLevels()
		bids, asks := s.(*trading.State).Depth(btc, 0)
		for side, all := range [][]trading.Level{bids, asks} {
			for _, l := range all {
				put(t, book, side == 1, l.Price.String(), l.Amount.String())
			}
		}
		digest, sequence = book.digest, at.Sequence
	})
	return digest, sequence
}

func put(t *testing.T, book *levels, ask bool, price, amount string) {
	p, err := thousandths(price)
	if err != nil {
		t.Error(err)
	}
	a, err := thousandths(amount)
	if err != nil {
		t.Error(err)
	}
	book.set(place{ask, p}, a)
}

// streamed keeps a book as a client does, and returns its digest after each message.
func streamed(t *testing.T, messages []livetest.Message) (sequences []int64, digests []uint64) {
	type level struct{ Type, Price, Amount string }
	book := newLevels()
	for _, m := range messages {
		var told struct {
			Type         string
			Sequence     int64
			PrevSequence int64 `json:"prev_sequence"`
			Bids, Asks   []level
			Changes      []level
		}
		if err := json.Unmarshal(m.Raw, &told); err != nil {
			t.Fatal(err)
		}
		if told.Type == "update" && told.PrevSequence != sequences[len(sequences)-1] {
			t.Fatalf("a gap before %d", told.Sequence)
		}
		for _, l := range told.Bids {
			put(t, book, false, l.Price, l.Amount)
		}
		for _, l := range told.Asks {
			put(t, book, true, l.Price, l.Amount)
		}
		for _, l := range told.Changes {
			put(t, book, l.Type == "ask", l.Price, l.Amount)
		}
		sequences, digests = append(sequences, told.Sequence), append(digests, book.digest)
	}
	return sequences, digests
}
