package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// asLoader is the variable that makes the test binary be the loader of TestThousandsOfSockets: a process that opens sockets by
// the thousand. It reads a loaderConfig from its standard input and writes a loaderReport every few milliseconds, each a line of
// JSON; when it reads loaderEnd it holds what the sockets got against each other, and ends with a last report that has a result.
const asLoader = "PERPETUA_TEST_AS_LOADER"

type loaderConfig struct {
	URL, Token                string
	Counting, Checking, Stuck int // sockets
}

// loaderReport says how far the sockets are, but for the stuck ones.
type loaderReport struct {
	Open     bool         // all are there and have their snapshot
	Sequence int64        // the least of the records that those which check have come to
	Behind   int64        // messages that one which counts lacks beside them at most
	Result   loaderResult // zero until the end
	Error    string
}

// loaderEnd says with which record the updates of the book ended.
type loaderEnd struct{ Sequence int64 }

// loaderResult is what the sockets got.
type loaderResult struct {
	Messages, Bytes int64       // that each of them got after its snapshot
	Books           []bookVisit // that each of those which check had
	End             int64
	Told            []string // why the stuck ones were closed
}

// bookVisit is a visit in JSON.
type bookVisit struct {
	Sequence int64
	Digest   uint64
}

// loader is what the loader's process has.
type loader struct {
	cfg    loaderConfig
	failed chan error

	mu       sync.Mutex // while the sockets are opened
	counting []*countingSocket
	checking []*checkingSocket
	stuck    []*websocket.Conn
}

// loaderMain is the loader's process, and returns its exit code.
func loaderMain(in io.Reader, out io.Writer) int {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	l := &loader{failed: make(chan error, 1)}
	result, err := l.run(dec, enc)
	report := loaderReport{Result: result}
	if err != nil {
		report.Error = err.Error()
	}
	if enc.Encode(report) != nil || err != nil {
		return 1
	}
	return 0
}

func (l *loader) run(dec *json.Decoder, enc *json.Encoder) (loaderResult, error) {
	if err := dec.Decode(&l.cfg); err != nil {
		return loaderResult{}, err
	}
	if err := l.open(); err != nil {
		return loaderResult{}, err
	}
	end := make(chan loaderEnd, 1)
	go func() {
		var e loaderEnd
		if err := dec.Decode(&e); err != nil {
			l.fail(err)
			return
		}
		end <- e
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-l.failed:
			return loaderResult{}, err
		case e := <-end:
			return l.result(e)
		case <-tick.C:
			if err := enc.Encode(l.report()); err != nil {
				return loaderResult{}, err
			}
		}
	}
}

func (l *loader) fail(err error) {
	select {
	case l.failed <- err:
	default: // one is enough
	}
}

// open opens the sockets, some at a time.
func (l *loader) open() error {
	numbers := make(chan int)
	var dialing sync.WaitGroup
	for range 32 {
		dialing.Go(func() {
			for n := range numbers {
				if err := l.enter(n); err != nil {
					l.fail(fmt.Errorf("socket %d: %w", n, err))
				}
			}
		})
	}
	for n := range l.cfg.Counting + l.cfg.Checking + l.cfg.Stuck {
		numbers <- n
	}
	close(numbers)
	dialing.Wait()
	select {
	case err := <-l.failed:
		return err
	default:
		return nil
	}
}

// enter opens a socket: first come those that are stuck, then those that check, then those that count.
func (l *loader) enter(n int) error {
	stuck := n < l.cfg.Stuck
	socket, err := l.dial(n, stuck)
	if err != nil {
		return err
	}
	if stuck {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stuck = append(l.stuck, socket)
		// What it asks for is answered into a connection that nobody reads.
		return socket.WriteJSON(livetest.Request{Op: "subscribe", Args: []string{"orders", "trades", "balance-changes", "positions", "margin"}})
	}
	c := &checkingSocket{socket: socket}
	if err := c.begin(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < l.cfg.Stuck+l.cfg.Checking {
		l.checking = append(l.checking, c)
		go func() { l.fail(c.read()) }()
		return nil
	}
	counting := &countingSocket{c: socket.NetConn()}
	l.counting = append(l.counting, counting)
	go func() { l.fail(counting.read()) }()
	return nil
}

// dial opens a connection. There are but 28,000 ports on an address, so they come from several.
func (l *loader) dial(n int, stuck bool) (*websocket.Conn, error) {
	d := net.Dialer{}
	if runtime.GOOS == "linux" { // where all of 127.0.0.0/8 is this machine
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n%8))}
	}
	if stuck { // what it does not read stays with the server
		d.Control = func(_, _ string, c syscall.RawConn) (err error) {
			failed := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
			return errors.Join(failed, err)
		}
	}
	dialer := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: d.DialContext, ReadBufferSize: 1024, WriteBufferPool: &sync.Pool{}}
	socket, response, err := dialer.Dial(l.cfg.URL, http.Header{"Authorization": {"Bearer " + l.cfg.Token}})
	if err != nil {
		return nil, err
	}
	return socket, response.Body.Close()
}

// report says how far the sockets are.
func (l *loader) report() loaderReport {
	r := loaderReport{Open: true, Sequence: l.checking[0].sequence.Load()}
	most := int64(0)
	for _, c := range l.checking {
		r.Sequence = min(r.Sequence, c.sequence.Load())
		most = max(most, c.messages.Load())
	}
	for _, c := range l.counting {
		r.Behind = max(r.Behind, most-c.messages.Load())
	}
	return r
}

// result holds what the sockets got against each other. All that is sent to them has come.
func (l *loader) result(end loaderEnd) (loaderResult, error) {
	first := l.checking[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	books := first.book.spans[0]
	r := loaderResult{Messages: first.sum.messages, Bytes: first.sum.bytes, End: books.end}
	for _, v := range books.visits {
		r.Books = append(r.Books, bookVisit{v.sequence, v.digest})
	}
	if books.end != end.Sequence {
		return r, fmt.Errorf("the first socket that checks ended at %d, want %d", books.end, end.Sequence)
	}
	for n, c := range l.checking[1:] {
		c.mu.Lock()
		same := c.sum == first.sum && slices.Equal(c.book.spans[0].visits, books.visits)
		c.mu.Unlock()
		if !same {
			return r, fmt.Errorf("of those that check the %d. got something else than the first", n+2)
		}
	}
	for n, c := range l.counting {
		if sum := c.settled(); sum != first.sum {
			return r, fmt.Errorf("of those that count the %d. got %+v, those that check %+v", n+1, sum, first.sum)
		}
	}
	for n, socket := range l.stuck {
		told, err := readOut(socket)
		if err != nil {
			return r, fmt.Errorf("of the stuck ones the %d.: %w", n+1, err)
		}
		r.Told = append(r.Told, told)
	}
	return r, nil
}

// readOut reads what a stuck socket was sent, and returns with what it was closed.
func readOut(socket *websocket.Conn) (told string, err error) {
	if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	for {
		_, raw, err := socket.ReadMessage()
		var frame *websocket.CloseError
		if errors.As(err, &frame) {
			return fmt.Sprintf("%s, then %d %s", told, frame.Code, frame.Text), nil
		}
		if err != nil {
			return "", err
		}
		var m struct{ Code string }
		if err := json.Unmarshal(raw, &m); err != nil {
			return "", err
		}
		told = m.Code
	}
}
