package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaProxy passes on what clients and brokers say to each other, save what it is told to do with produce requests.
type kafkaProxy struct {
	t       testing.TB
	seeds   []string // its own addresses
	rule    func(produce []byte) (ruling, error)
	working sync.WaitGroup

	mu     sync.Mutex
	fronts map[string]string // its address that stands for a broker's
	ends   []io.Closer       // listeners and connections, closed with the test
	over   bool
}

// ruling is what the proxy does with a produce request.
type ruling struct {
	forward []byte // is passed on, if anything
	// answered is called when the broker has answered, which the client then does not learn; nil where it does.
	answered func()
	// until is closed when the client's connection is to end, which it does not read from any more; nil where it goes on.
	until <-chan struct{}
}

// newKafkaProxy starts a proxy in front of brokers, and of those that they name.
func newKafkaProxy(t testing.TB, brokers []string, rule func([]byte) (ruling, error)) *kafkaProxy {
	t.Helper()
	p := &kafkaProxy{t: t, rule: rule, fronts: make(map[string]string)}
	t.Cleanup(p.end)
	for _, b := range brokers {
		front, err := p.front(b)
		if err != nil {
			t.Fatal(err)
		}
		p.seeds = append(p.seeds, front)
	}
	return p
}

// front returns the address that stands for a broker's.
func (p *kafkaProxy) front(broker string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, known := p.fronts[broker]; known {
		return at, nil
	}
	if p.over {
		return broker, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	at := l.Addr().String()
	p.fronts[broker], p.ends = at, append(p.ends, l)
	p.working.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.working.Go(func() { p.connect(client, broker) })
		}
	})
	return at, nil
}

// end closes whatever is open.
func (p *kafkaProxy) end() {
	p.mu.Lock()
	p.over = true
	for _, c := range p.ends {
		c.Close()
	}
	p.mu.Unlock()
	p.working.Wait()
}

// keep has a connection closed with the test. It reports whether the test still goes on.
func (p *kafkaProxy) keep(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, c)
	return !p.over
}

// connect passes on what a client and a broker say.
func (p *kafkaProxy) connect(client net.Conn, broker string) {
	defer client.Close()
	server, err := net.Dial("tcp", broker)
	if err != nil {
		return // which the client learns from the end of its connection
	}
	defer server.Close()
	if !p.keep(client) || !p.keep(server) {
		return
	}
	var asked sync.Map // the requests whose responses have addresses of brokers, by correlation id
	p.working.Go(func() {
		defer client.Close()
		p.answer(server, client, &asked)
	})
	p.ask(client, server, &asked)
}

// awaited is what to do with the response to a request that some client waits for.
type awaited func(response []byte) (forward []byte, err error)

// ask passes requests on until either side ends.
func (p *kafkaProxy) ask(client, server net.Conn, asked *sync.Map) {
	for {
		request, err := readFrame(client)
		if err != nil {
			return
		}
		key, version, correlation := kmsg.Key(binary.BigEndian.Uint16(request)), int16(binary.BigEndian.Uint16(request[2:])), binary.BigEndian.Uint32(request[4:])
		does := ruling{forward: request}
		switch key {
		case kmsg.Produce:
			if does, err = p.rule(request); err != nil {
				p.t.Errorf("a produce request: %v", err)
				return
			}
			if does.answered != nil {
				asked.Store(correlation, awaited(func([]byte) ([]byte, error) { does.answered(); return nil, nil }))
			}
		case kmsg.Metadata, kmsg.FindCoordinator:
			response := kmsg.ResponseForKey(key.Int16())
			response.SetVersion(version)
			asked.Store(correlation, awaited(func(b []byte) ([]byte, error) { return p.redirect(b, response) }))
		}
		if err := writeFrame(server, does.forward); err != nil {
			return
		}
		if does.until != nil {
			<-does.until
			return
		}
	}
}

// answer passes responses on until either side ends.
func (p *kafkaProxy) answer(server, client net.Conn, asked *sync.Map) {
	for {
		response, err := readFrame(server)
		if err != nil {
			return
		}
		if then, ok := asked.LoadAndDelete(binary.BigEndian.Uint32(response)); ok {
			if response, err = then.(awaited)(response); err != nil {
				p.t.Errorf("a response of Kafka's: %v", err)
				return
			}
		}
		if err := writeFrame(client, response); err != nil {
			return
		}
	}
}

// redirect replaces the brokers' addresses in a response, which is read into r. (Other responses may name a new leader's. These
// tests have none.)
func (p *kafkaProxy) redirect(response []byte, r kmsg.Response) ([]byte, error) {
	head := 4 // the correlation id
	if r.IsFlexible() {
		head++ // the number of tags, which is zero
	}
	if len(response) < head {
		return nil, io.ErrUnexpectedEOF
	}
	if err := r.ReadFrom(response[head:]); err != nil {
		return nil, err
	}
	var failed error
	move := func(host *string, port *int32) {
		if *host == "" { // there is none
			return
		}
		at, err := p.front(net.JoinHostPort(*host, strconv.Itoa(int(*port))))
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		own, number, _ := net.SplitHostPort(at)
		n, err := strconv.Atoi(number)
		failed = errors.Join(failed, err)
		*host, *port = own, int32(n)
	}
	switch r := r.(type) {
	case *kmsg.MetadataResponse:
		for i := range r.Brokers {
			move(&r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.FindCoordinatorResponse:
		move(&r.Host, &r.Port)
		for i := range r.Coordinators {
			move(&r.Coordinators[i].Host, &r.Coordinators[i].Port)
		}
	}
	return r.AppendTo(response[:head:head]), failed
}

// readFrame reads a request or a response without its size.
func readFrame(from net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 8 || n > 100<<20 {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(from, frame)
	return frame, err
}

// writeFrame writes a request or a response, unless it is empty.
func writeFrame(to net.Conn, frame []byte) error {
	if len(frame) == 0 {
		return nil
	}
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}
