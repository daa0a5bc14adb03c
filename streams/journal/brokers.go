package journal

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	listEvery   = 300 * time.Millisecond // how often the brokers are asked whom they list
	listAlone   = 5 * time.Second        // the same, when they have answered that there is at most one
	listTimeout = 500 * time.Millisecond
)

// errLost is the cause of a refused connection to a lost broker.
var errLost = errors.New("the other brokers no longer list this broker")

// brokers closes the connections of all clients of a [Client] to brokers that the cluster has lost.
//
// A broker that hangs, or that loses packets, closes no connection. A request to it then costs a client its timeout,
// and a new connection costs the timeout several times. The controller fences the broker when its session ends, and
// after that the other brokers do not list it. brokers asks all known brokers concurrently, closes the connections to a
// broker that none of them lists, and refuses connections to it until one lists it again. So a silent broker costs a
// client no more than a killed one.
type brokers struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	log  *slog.Logger

	start  sync.Once // at the first connection
	stop   context.CancelFunc
	ctx    context.Context
	listen sync.WaitGroup
	client chan *kgo.Client // receives once the client that asks the brokers; see askWith

	clock    Clock
	started  time.Time    // when brokers was made
	answered atomic.Int64 // when the latest request that was answered was sent, or when brokers was made, by the clock

	resuming sync.Mutex
	ahead    time.Duration // of the clock relative to Go's, which is that of durations
	resumed  time.Duration // since started, when it was last seen to have jumped: the machine had been suspended

	mu    sync.Mutex
	known map[int32]string                    // the address of each broker that was ever listed, or connected to by its number
	lost  map[string]bool                     // addresses that no broker lists now
	links map[string]map[*brokerLink]struct{} // open connections and attempts, by address
}

// A brokerLink is a connection to a broker, or an attempt to make one.
type brokerLink struct {
	net.Conn        // nil during the attempt
	cancel   func() // ends the attempt
	forget   func()
}

// Close closes the connection.
func (l *brokerLink) Close() error {
	l.forget()
	return l.Conn.Close()
}

// newBrokers returns a dialer for Kafka clients. It asks no broker before askWith.
func newBrokers(cfg Config) *brokers {
	b := &brokers{clock: cfg.Clock, started: time.Now(), dial: cfg.Dial, log: cfg.Logger, client: make(chan *kgo.Client, 1),
		known: make(map[int32]string), lost: make(map[string]bool), links: make(map[string]map[*brokerLink]struct{})}
	b.ahead = b.clock.Elapsed()
	b.answered.Store(int64(b.ahead))
	if b.dial == nil {
		plain := &net.Dialer{Timeout: dialTimeout}
		b.dial = plain.DialContext
		if cfg.TLS != nil {
			b.dial = (&tls.Dialer{NetDialer: plain, Config: cfg.TLS}).DialContext
		}
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

var (
	_ kgo.HookBrokerE2E     = (*brokers)(nil)
	_ kgo.HookBrokerConnect = (*brokers)(nil)
)

// OnBrokerConnect records a broker that a client knows by its number. The broker may have been silent since before it answered list.
func (b *brokers) OnBrokerConnect(of kgo.BrokerMetadata, _ time.Duration, _ net.Conn, _ error) {
	if of.NodeID < 0 { // an address of the configuration
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.known[of.NodeID]; !known {
		b.known[of.NodeID] = net.JoinHostPort(of.Host, strconv.Itoa(int(of.Port)))
	}
}

// jump is the least difference between two clocks that is a suspension, not a pause between reading the two.
const jump = 10 * time.Millisecond

// OnBrokerE2E records when an answered request was sent. The answer may have waited, in a buffer of a process that was stopped
// or of a machine that was suspended.
func (b *brokers) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	if e2e.Err() != nil {
		return
	}
	b.resuming.Lock()
	defer b.resuming.Unlock()
	now := b.clock.Elapsed() // first, so that a pause between the two does not add to ahead
	monotonic := time.Since(b.started)
	if ahead := now - monotonic; ahead > b.ahead+jump {
		b.ahead, b.resumed = ahead, monotonic
	}
	// The duration leaves out a suspension, so the time of a request from before one is not known.
	if sent := monotonic - e2e.DurationE2E(); sent >= b.resumed {
		b.answered.Store(max(b.answered.Load(), int64(min(sent+b.ahead, now))))
	}
}

// askWith sets the client that asks the brokers. It must be called once. The client's own connections are dialed by b, and
// kgo.NewClient may dial before it returns: so follow starts earlier and waits for the client.
func (b *brokers) askWith(client *kgo.Client) { b.client <- client }

// close stops asking.
func (b *brokers) close() {
	b.start.Do(func() {})
	b.stop()
	b.listen.Wait()
}

// connect dials an address. It is the dialer of each client.
func (b *brokers) connect(ctx context.Context, network, address string) (net.Conn, error) {
	b.start.Do(func() { b.listen.Go(b.follow) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &brokerLink{cancel: cancel}
	l.forget = func() { b.forget(address, l) }
	if !b.add(address, l) {
		return nil, lostError(network)
	}
	conn, err := b.dial(ctx, network, address)
	b.mu.Lock()
	if err == nil {
		l.Conn = newProgressing(conn)
	}
	lost := b.lost[address] // since the attempt began
	b.mu.Unlock()
	switch {
	case err == nil && !lost:
		return l, nil
	case err == nil:
		abort(conn)
	}
	b.forget(address, l)
	if lost {
		err = lostError(network)
	}
	return nil, err
}

// abort closes a connection without a word to its other end, for which TLS would wait.
func abort(c net.Conn) {
	if p, ok := c.(*progressing); ok {
		c = p.Conn
	}
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	c.Close()
}

// lostError returns an error of the kind that a closed port gives: franz-go then forgets which broker coordinates a group.
func lostError(network string) error { return &net.OpError{Op: "dial", Net: network, Err: errLost} }

// add registers an attempt. It returns false if the broker is lost.
func (b *brokers) add(address string, l *brokerLink) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost[address] {
		return false
	}
	if b.links[address] == nil {
		b.links[address] = make(map[*brokerLink]struct{})
	}
	b.links[address][l] = struct{}{}
	return true
}

func (b *brokers) forget(address string, l *brokerLink) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.links[address], l)
	if len(b.links[address]) == 0 {
		delete(b.links, address)
	}
}

// follow asks the brokers for their list of brokers until close.
func (b *brokers) follow() {
	var client *kgo.Client
	select {
	case client = <-b.client:
	case <-b.ctx.Done():
		return
	}
	for {
		listed := b.list(client)
		select {
		case <-time.After(listPause(listed != nil, b.update(listed))):
		case <-b.ctx.Done():
			return
		}
	}
}

// listPause returns how long to wait before asking the brokers again. answered reports whether one has answered, and known is the
// number of known brokers. Without an answer, there may be more.
func listPause(answered bool, known int) time.Duration {
	if answered && known < 2 {
		return listAlone
	}
	return listEvery
}

// list asks all known brokers concurrently and returns the union of their lists, by number. It is nil if none answers.
func (b *brokers) list(client *kgo.Client) map[int32]string {
	ctx, cancel := context.WithTimeout(b.ctx, listTimeout)
	defer cancel()
	var ask []func(context.Context, kmsg.Request) (kmsg.Response, error)
	for _, broker := range client.DiscoveredBrokers() {
		ask = append(ask, broker.Request)
	}
	if len(ask) == 0 {
		ask = append(ask, client.Request)
	}
	var (
		mu     sync.Mutex
		listed map[int32]string
		asking sync.WaitGroup
	)
	for _, request := range ask {
		asking.Go(func() {
			r := kmsg.NewPtrMetadataRequest()
			r.Topics = []kmsg.MetadataRequestTopic{} // none; nil would mean all
			answer, err := request(ctx, r)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if listed == nil {
				listed = make(map[int32]string)
			}
			for _, broker := range answer.(*kmsg.MetadataResponse).Brokers {
				listed[broker.NodeID] = net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port)))
			}
		})
	}
	asking.Wait()
	return listed
}

// update processes the listed brokers, closes the connections to known brokers that are not listed, and returns the
// number of known brokers. Without an answer no broker counts as lost: each must be tried again.
func (b *brokers) update(listed map[int32]string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.lost
	b.lost = make(map[string]bool)
	for number, address := range listed {
		b.known[number] = address
	}
	if listed != nil {
		for number, address := range b.known {
			if _, there := listed[number]; !there {
				b.lost[address] = true
			}
		}
		for _, address := range listed { // a broker may have a new number
			delete(b.lost, address)
		}
	}
	for address := range b.lost {
		if !before[address] {
			b.log.Warn("the brokers have lost one of them: connections to it are closed", "broker", address)
		}
		for l := range b.links[address] {
			l.cancel()
			if l.Conn != nil {
				abort(l.Conn)
			}
		}
	}
	return len(b.known)
}
