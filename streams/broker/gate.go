package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// gate is the server's end of a connection to kfake. It holds each response back until the disk has all the data that
// the response reveals. So kfake can run without its own syncing, which would sync each batch separately and twice, and
// drop the errors.
type gate struct {
	net.Conn
	halt   *halt
	disk   *disk // nil without Config.Sync
	logger *slog.Logger
	left   func(*gate) // called at Close

	in reader // used only by the goroutine that reads

	mu    sync.Mutex
	heads []head // requests that may still be answered
}

// head identifies a request. A response carries only the correlation id, so its kind is looked up here.
type head struct {
	key, version int16
	correlation  int32
}

// maxRequest is the size limit of a request in bytes, the default of Kafka's own brokers. Without the gate's checks,
// kfake would allocate any size that a client claims to send, and panic at a request of an unknown kind.
const maxRequest = 100 << 20

// headsKept is the largest number of unanswered requests on a connection. kfake handles one request of a connection at
// a time and reads one ahead. When a third arrives, the first has been answered or will never be (acks=0).
const headsKept = 3

// Read implements net.Conn.
func (g *gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if wrong := g.in.pass(b[:n], g.remember); wrong != nil {
		g.logger.Warn("closing a connection that does not speak Kafka's protocol", "error", wrong)
		return 0, wrong
	}
	return n, err
}

func (g *gate) remember(h head) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.heads) == headsKept {
		g.heads = g.heads[:copy(g.heads, g.heads[1:])]
	}
	g.heads = append(g.heads, h)
}

// Write implements net.Conn. kfake writes each response in one call.
func (g *gate) Write(b []byte) (int, error) {
	if g.disk != nil {
		if err := g.release(b); err != nil {
			return 0, err
		}
	}
	// This check is also needed without a disk: a failed write has stopped the broker before kfake answers it, and
	// kfake would acknowledge a resend as a duplicate.
	if g.halt.stopped() {
		return 0, errStopped
	}
	return g.Conn.Write(b)
}

// Close implements net.Conn.
func (g *gate) Close() error {
	g.left(g)
	return g.Conn.Close()
}

// release returns when the disk has all the data that a response reveals.
func (g *gate) release(b []byte) error {
	if len(b) < 8 || int64(binary.BigEndian.Uint32(b)) != int64(len(b)-4) {
		return fmt.Errorf("broker: %d bytes that are not one response", len(b))
	}
	h, ok := g.find(int32(binary.BigEndian.Uint32(b[4:])))
	if !ok {
		return errors.New("broker: a response to no request")
	}
	if !tells(kmsg.Key(h.key)) {
		return nil
	}
	response := kmsg.ResponseForKey(h.key)
	response.SetVersion(h.version)
	body := b[8:]
	if response.IsFlexible() && len(body) > 0 {
		body = body[1:] // the number of tags, which is zero
	}
	if err := response.ReadFrom(body); err != nil {
		return fmt.Errorf("broker: a response to %s that is none: %w", kmsg.NameForKey(h.key), err)
	}
	return g.disk.release(response)
}

func (g *gate) find(correlation int32) (head, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, h := range g.heads {
		if h.correlation == correlation {
			g.heads = g.heads[:copy(g.heads, g.heads[i+1:])]
			return h, true
		}
	}
	return head{}, false
}

// reader extracts the heads of requests from the bytes that a connection receives.
type reader struct {
	head [12]byte // size, key, version, correlation id
	have int      // number of bytes of head received so far
	rest int64    // bytes of the request not yet received after its head
}

// pass processes the next bytes and calls found for each head that they complete.
func (r *reader) pass(b []byte, found func(head)) error {
	for len(b) > 0 {
		if r.rest > 0 {
			n := min(r.rest, int64(len(b)))
			b, r.rest = b[n:], r.rest-n
			continue
		}
		n := copy(r.head[r.have:], b)
		b, r.have = b[n:], r.have+n
		if r.have < 4 {
			continue
		}
		size := int64(binary.BigEndian.Uint32(r.head[:]))
		if size < 8 || size > maxRequest {
			return fmt.Errorf("broker: a request of %d bytes", size)
		}
		if r.have < len(r.head) {
			continue
		}
		h := head{
			key:         int16(binary.BigEndian.Uint16(r.head[4:])),
			version:     int16(binary.BigEndian.Uint16(r.head[6:])),
			correlation: int32(binary.BigEndian.Uint32(r.head[8:])),
		}
		if kmsg.RequestForKey(h.key) == nil {
			return fmt.Errorf("broker: a request of kind %d", h.key)
		}
		found(h)
		r.have, r.rest = 0, size-8
	}
	return nil
}

// gateListener wraps every connection in a gate.
type gateListener struct {
	net.Listener
	open   chan struct{} // closed when kfake is ready for connections
	halt   *halt
	disk   *disk
	logger *slog.Logger

	mu    sync.Mutex
	gates map[*gate]struct{} // the open ones
}

// Accept implements net.Listener.
func (l *gateListener) Accept() (net.Conn, error) {
	select {
	case <-l.open:
	case <-l.halt.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &gate{Conn: c, halt: l.halt, disk: l.disk, logger: l.logger, left: l.remove}
	l.mu.Lock()
	l.gates[g] = struct{}{}
	l.mu.Unlock()
	return g, nil
}

func (l *gateListener) remove(g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.gates, g)
}

// hangUp accepts no further connection and closes the open ones: their clients learn immediately that no answer will
// come.
func (l *gateListener) hangUp() {
	l.Close()
	l.mu.Lock()
	gates := slices.Collect(maps.Keys(l.gates))
	l.mu.Unlock()
	for _, g := range gates {
		g.Close()
	}
}
