package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// inFlight is the maximum number of messages in flight to each socket. Both servers drop sockets or messages beyond
// their buffers; melody's default is 256 messages.
const inFlight = 64

// socketConfig configures a server of sockets: the number of readers, and the message that melody sends.
type socketConfig struct {
	Sockets int
	Message []byte
}

// socketReady contains the server's URL, the address to which readers report arrived messages, and a sample message.
type socketReady struct {
	URL, Pace string
	Message   []byte
}

// pace lets a server send as fast as its readers read: they report the number of arrived messages over a connection.
type pace struct {
	listener net.Listener
	sockets  int64
	sent     int64
	arrived  atomic.Int64
	moved    chan struct{}
}

func newPace(sockets int) (*pace, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &pace{listener: l, sockets: int64(sockets), moved: make(chan struct{}, 1)}
	go p.read()
	return p, nil
}

// read receives the number of arrived messages until the connection ends.
func (p *pace) read() {
	c, err := p.listener.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	var count [8]byte
	for {
		if _, err := io.ReadFull(c, count[:]); err != nil {
			return
		}
		p.arrived.Store(int64(binary.BigEndian.Uint64(count[:])))
		select {
		case p.moved <- struct{}{}:
		default:
		}
	}
}

// until waits until at most left messages to each socket are in flight.
func (p *pace) until(left int64) error {
	for p.sent*p.sockets-p.arrived.Load() > left*p.sockets {
		select {
		case <-p.moved:
		case <-time.After(10 * time.Second):
			return fmt.Errorf("%d messages of %d have not arrived", p.sent*p.sockets-p.arrived.Load(), p.sent*p.sockets)
		}
	}
	return nil
}

// socketRound is the result of a round of a server of sockets.
type socketRound struct {
	Rate     float64 // messages that arrived per second
	Messages int64
}

// serve sends messages for each requested time and answers with the number that arrived.
func (p *pace) serve(in *json.Decoder, out *json.Encoder, send func() error) error {
	for {
		var length time.Duration
		if err := in.Decode(&length); err != nil {
			return err
		}
		before, start := p.arrived.Load(), time.Now()
		for time.Since(start) < length {
			if err := p.until(inFlight - 1); err != nil {
				return err
			}
			if err := send(); err != nil {
				return err
			}
			p.sent++
		}
		if err := p.until(0); err != nil {
			return err
		}
		n := p.arrived.Load() - before
		if err := out.Encode(socketRound{float64(n) / time.Since(start).Seconds(), n}); err != nil {
			return err
		}
	}
}

// readerConfig configures the reader.
type readerConfig struct {
	URL, Pace string
	Sockets   int
	Subscribe string // sent first if it is not empty
	Skip      int    // number of messages that answer it
}

// socketReaderChild opens sockets and counts their messages. It parses only the lengths of frames.
func socketReaderChild(ctx context.Context, cfg readerConfig, in *json.Decoder, out *json.Encoder) error {
	runtime.GOMAXPROCS(1)
	var arrived atomic.Int64
	buffers := &sync.Pool{New: func() any { return new([readSize]byte) }}
	var reading sync.WaitGroup
	for range cfg.Sockets {
		c, err := cfg.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		reading.Go(func() { countFrames(c.NetConn(), buffers, &arrived) })
	}
	report, err := net.Dial("tcp", cfg.Pace)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	reading.Go(func() { tell(report, &arrived, stop) })
	err = awaitEnd(in, out, struct{}{})
	close(stop)
	return errors.Join(err, report.Close())
}

// dial opens a socket, subscribes, and reads the answers to the subscription.
func (cfg *readerConfig) dial(ctx context.Context) (*websocket.Conn, error) {
	c, answer, err := websocket.DefaultDialer.DialContext(ctx, cfg.URL, http.Header{})
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	if cfg.Subscribe != "" {
		err = c.WriteMessage(websocket.TextMessage, []byte(cfg.Subscribe))
	}
	for n := 0; n < cfg.Skip && err == nil; n++ {
		_, _, err = c.ReadMessage()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// tell reports the number of arrived messages whenever it has grown, until it is stopped.
func tell(report io.Writer, arrived *atomic.Int64, stop <-chan struct{}) {
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if n := arrived.Load(); n != last {
			last = n
			if _, err := report.Write(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
				return
			}
		}
	}
}

// countFrames counts unmasked text frames until the connection ends. It uses one system call for the data that has
// arrived, without a second one to find the connection empty: a read that does not fill its buffer has emptied the
// connection, and later data wakes the reader. All readers share the buffers, since most have no data to read.
func countFrames(c net.Conn, buffers *sync.Pool, arrived *atomic.Int64) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return
	}
	var frames frameCounter
	for ended := false; !ended; {
		err := raw.Read(func(fd uintptr) bool {
			buffer := buffers.Get().(*[readSize]byte)
			defer buffers.Put(buffer)
			for {
				n, err := syscall.Read(int(fd), buffer[:])
				switch {
				case err == syscall.EINTR:
					continue
				case err == syscall.EAGAIN:
					return false
				case err != nil || n <= 0:
					ended = true
					return true
				}
				arrived.Add(frames.count(buffer[:n]))
				if n < len(buffer) {
					return false
				}
			}
		})
		ended = ended || err != nil
	}
}

// readSize is larger than inFlight messages of a book together.
const readSize = 64 << 10

// frameCounter counts frames in a stream of bytes. Frames must be unmasked and at most 64 KiB long.
type frameCounter struct {
	header [4]byte // received part of a frame's header
	have   int
	left   int // missing bytes of a frame with a complete header
}

// count processes the next bytes of the stream and returns the number of text frames that end in them.
func (f *frameCounter) count(b []byte) (text int64) {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			f.left -= n
			b = b[n:]
		} else {
			f.header[f.have] = b[0]
			f.have++
			b = b[1:]
			if f.have < 2 || f.header[1] == 126 && f.have < 4 {
				continue
			}
			f.left = int(f.header[1])
			if f.left == 126 {
				f.left = int(f.header[2])<<8 + int(f.header[3])
			}
			f.have = 0
		}
		if f.left == 0 && f.header[0] == 0x81 {
			text++
		}
	}
	return text
}

// measureSockets measures how many messages reach a thousand sockets that read one book.
func measureSockets(ctx context.Context, b *bench) error {
	hub, message, err := b.socketServer(ctx, "hub", nil, `{"op":"subscribe","args":["orderbook-stream:`+symbol+`"]}`, 2)
	if err != nil {
		return err
	}
	defer hub.stop()
	melody, _, err := b.socketServer(ctx, "melody", message, "", 0)
	if err != nil {
		return err
	}
	defer melody.stop()
	if err := b.pair(Row{Measure: fmt.Sprintf("messages delivered to %d sockets", b.sockets), Unit: "messages/s", Against: "melody's own broadcast", Aim: atLeast(5)},
		hub.round, melody.round); err != nil {
		return err
	}
	note := fmt.Sprintf("messages of %d bytes, one a record, without the write path: its records are decided in memory", len(message))
	if hub.used > 0 && melody.used > 0 {
		note += fmt.Sprintf("; processor time per message: server %s µs, reader %s µs, beside %s and %s µs",
			number(hub.each(hub.used)), number(hub.each(hub.read)), number(melody.each(melody.used)), number(melody.each(melody.read)))
	}
	b.rows[len(b.rows)-1].Note = note
	return nil
}

// sockets is a server of sockets and its readers.
type sockets struct {
	server, reader *child
	length         time.Duration // of a round

	messages   int64         // messages that arrived while the processor time was measured
	used, read time.Duration // processor time of the server and of the readers
}

func (s *sockets) stop() {
	s.reader.stop()
	s.server.stop()
}

// round sends messages for a round and returns the number that arrived per second.
func (s *sockets) round() (float64, error) {
	var r socketRound
	used, known := processorTimeOf(s.server.cmd.Process.Pid)
	read, _ := processorTimeOf(s.reader.cmd.Process.Pid)
	if err := s.server.call(s.length, &r); err != nil {
		return 0, err
	}
	usedAfter, ok := processorTimeOf(s.server.cmd.Process.Pid)
	readAfter, also := processorTimeOf(s.reader.cmd.Process.Pid)
	if known && ok && also {
		s.messages += r.Messages
		s.used += usedAfter - used
		s.read += readAfter - read
	}
	return r.Rate, nil
}

// each returns the part of a time per message, in microseconds.
func (s *sockets) each(of time.Duration) float64 {
	return microseconds(of) / float64(max(1, s.messages))
}

// socketServer starts a server of sockets and its readers.
func (b *bench) socketServer(ctx context.Context, name string, message []byte, subscribe string, skip int) (*sockets, []byte, error) {
	var ready socketReady
	server, err := b.child(ctx, name, socketConfig{b.sockets, message}, &ready)
	if err != nil {
		return nil, nil, err
	}
	reader, err := b.child(ctx, "socket-reader", readerConfig{ready.URL, ready.Pace, b.sockets, subscribe, skip}, new(struct{}))
	if err != nil {
		server.stop()
		return nil, nil, err
	}
	return &sockets{server: server, reader: reader, length: b.round}, ready.Message, nil
}
