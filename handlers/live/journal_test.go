package live_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// exchange is a trading journal on a broker, its owner, a fold of it and a hub over the fold.
type exchange struct {
	t      *testing.T
	client *journal.Client
	owner  *journal.Owner
	fold   *follow.Fold
	url    string
	hub    *live.Hub
	tokens
}

func newExchange(t *testing.T, limits live.Limits, wrap live.Wrap) *exchange {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.EnsureTopics(t.Context(), "trading"); err != nil {
		t.Fatal(err)
	}
	x := &exchange{t: t, client: client, fold: follow.New(client, trading.Rules(), 0)}
	if x.owner, err = journal.NewOwner(journal.OwnerConfig{Client: client, Rules: trading.Rules(), Node: "n1", URL: "http://n1"}); err != nil {
		t.Fatal(err)
	}
	hub := live.New(live.Config{Follower: x.fold, Journal: "trading", Tokens: x, Log: live.NewLog(client, trading.Rules(), 0, nil),
		Limits: limits, Wrap: wrap})
	x.hub = hub
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hub.Register(e.Echo)
	server := httptest.NewServer(e)
	x.url = "ws" + strings.TrimPrefix(server.URL, "http") + live.Path
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = x.owner.Run(ctx) })
	running.Go(func() { _ = x.fold.Run(ctx) })
	running.Go(func() { _ = hub.Run(ctx) })
	t.Cleanup(func() {
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = hub.Close(bounded)
		stop()
		running.Wait()
		server.Close()
	})
	return x
}

// submit gives a command to the owner until it serves, and returns the sequence of the record.
func (x *exchange) submit(customer, command string, payload any) int64 {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), livetest.Patience)
	defer cancel()
	c := decide.Command{ID: record.NewCommandID(time.Now()), Type: command, Payload: payload,
		Actor: decide.Actor{Sub: "test", Broker: brokerOf(customer)}}
	for {
		result, err := x.owner.Submit(ctx, c)
		if err == nil {
			return result.Position.Sequence
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), submit.CodeNotAccepted) {
			x.t.Fatalf("%s: %v", command, err)
		}
	}
}

// TestOverTheJournal runs the whole way: owner, broker, fold, sockets, resuming from the log, and its loss.
func TestOverTheJournal(t *testing.T) {
	x := newExchange(t, live.Limits{}, nil)
	for _, symbol := range []string{btc, eth} {
		x.submit("A1", trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(symbol)})
	}
	x.submit("A1", trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("1000")})
	var begin int64
	for _, code := range []string{"A1", "B1"} {
		x.submit(code, trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Broker: brokerOf(code)})
		begin = x.submit(code, trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 1_000_000 * fixed.Unit})
	}
	if err := x.fold.Wait(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	book := "orderbook-stream:" + btc
	early := livetest.Dial(t, x.url, x.reader("alpha"))
	early.SubscribeWith(livetest.Request{Args: []string{"orders", book}, Data: map[string]bool{"positions": true}})
	ended := livetest.Dial(t, x.url, "")
	ended.Subscribe("orderbook-stream:"+btc, "market-trades:"+btc, "orderbook-stream:"+eth, "market-trades:"+eth, "instruments")
	var last int64
	for n := range 40 {
		customer, action := "A1", order.Sell
		if n%4 == 3 {
			customer, action = "B1", order.Buy
		}
		last = x.submit(customer, trading.CommandPlaceOrder, limit(customer, btc, action, "1", fmt.Sprintf("%d", 1000+n%10)))
	}
	late := livetest.Dial(t, x.url, x.reader("alpha"))
	late.SubscribeWith(livetest.Request{Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", begin), Data: map[string]bool{"positions": true}})
	last = max(last, x.submit("A1", trading.CommandPlaceOrder, limit("A1", btc, order.Sell, "1", "1100")))

	at := fmt.Sprintf("trading/0@%d", last)
	for _, c := range []*livetest.Client{early, late} {
		c.Next("the last order", func(m livetest.Message) bool { return m.Channel == "orders" && m.Fields()["position"] == at })
	}
	want, got := early.On("orders"), late.On("orders")
	for i := range max(len(want), len(got)) {
		if len(want) != len(got) || string(want[i].Raw) != string(got[i].Raw) {
			t.Fatalf("resumed, %d messages, want %d; they differ at %d", len(got), len(want), i)
		}
	}
	rebuilt := livetest.Book{}
	for _, m := range early.Until("the book", func(all []livetest.Message) bool {
		for _, m := range all {
			if m.Channel == book && m.Fields()["position"] == at {
				return true
			}
		}
		return false
	}) {
		if m.Channel == book && m.Op == "" {
			if err := rebuilt.Apply(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	x.fold.View(func(s decide.State, _ record.Position) {
		if got := (sides{rebuilt.Bids(), rebuilt.Asks()}); !got.equal(sidesOf(s.(*trading.State), btc)) {
			t.Errorf("the book is %v", got)
		}
	})

	// An instrument is withdrawn: its streams end, each by itself, and nothing else does.
	x.submit("A1", trading.CommandDelistInstrument, &trading.DelistInstrument{Symbol: eth})
	codes := func(n int) map[string]string {
		t.Helper()
		out := make(map[string]string)
		for range n {
			m := ended.Next("the end of a subscription", func(m livetest.Message) bool { return m.Op == "error" })
			if len(m.Args) != 1 {
				t.Errorf("%s", m.Raw)
				continue
			}
			out[m.Args[0]] = m.Code
		}
		return out
	}
	if got, want := codes(2), (map[string]string{"orderbook-stream:" + eth: "ORDERBOOK_STREAM_UPSTREAM_REJECT", "market-trades:" + eth: "MARKET_TRADES_UPSTREAM_REJECT"}); !maps.Equal(got, want) {
		t.Errorf("withdrawn: %v, want %v", got, want)
	}
	if m := ended.Ask(livetest.Request{Op: "subscribe", Args: []string{"market-trades:" + btc}}); m.Code != string(live.AlreadySubscribed) {
		t.Errorf("another subscription ended as well: %s", m.Raw)
	}

	// The topic is lost and made again: the log behind the channels is not the one that they began with.
	kc, err := x.client.Kafka()
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(kc)
	defer admin.Close()
	if _, err := admin.DeleteTopics(t.Context(), x.client.Topic("trading")); err != nil {
		t.Fatal(err)
	}
	if err := x.client.EnsureTopics(t.Context(), "trading"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := early.Next("the end", func(m livetest.Message) bool { return m.Op == "error" })
		if m.Code != string(live.UpstreamError) && m.Code != string(live.OrderbookUpstreamError) {
			t.Errorf("%s", m.Raw)
		}
	}
	if got, want := codes(3), (map[string]string{"orderbook-stream:" + btc: "ORDERBOOK_STREAM_UPSTREAM_ERROR", "market-trades:" + btc: "MARKET_TRADES_UPSTREAM_ERROR",
		"instruments": "UPSTREAM_ERROR"}); !maps.Equal(got, want) {
		t.Errorf("the log is lost: %v, want %v", got, want)
	}
	for _, c := range []*livetest.Client{early, ended} { // the connections stay
		if m := c.Ask(livetest.Request{Op: "ping"}); m.Op != "pong" {
			t.Errorf("%s", m.Raw)
		}
	}
}
