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

// inFlight is how many messages to each socket may be on their way. Both rivals drop sockets or messages beyond their
// buffers, melody by default beyond 256 messages.
const inFlight = 64

// socketConfig tells a server of sockets how many will read, and what melody is to send.
type socketConfig struct {
	Sockets int
	Message []byte
}

// socketReady says where the server listens, where it wants to be told what has arrived, and what a message is.
type socketReady struct {
	URL, Pace string
	Message   []byte
}

// pace lets a server send as fast as its readers read: they tell it over a connection how many messages have arrived.
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

// read takes in how many messages have arrived, until the connection ends.
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

// until waits until no more than so many messages to each socket are under way.
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

// socketRound is what a server of sockets answers for a length of time.
type socketRound struct {
	Rate     float64 // messages a second that arrived
	Messages int64
}

// serve sends for each length of time asked for and answers how many messages arrived.
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

// readerConfig tells the reader whom to read.
type readerConfig struct {
	URL, Pace string
	Sockets   int
	Subscribe string // sent first, if anything
	Skip      int    // messages that answer it
}

// socketReaderChild opens sockets and counts what they get, looking at nothing but the frames' lengths.
func socketReaderChild(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	runtime.GOMAXPROCS(1)
	var cfg readerConfig
	if err := in.Decode(&cfg); err != nil {
		return err
	}
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
	err = out.Encode(struct{}{})
	if err == nil {
		err = in.Decode(new(struct{})) // nothing more comes
	}
	close(stop)
	return errors.Join(err, report.Close())
}

// dial opens a socket and reads what answers its subscription.
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

// tell reports how many messages have arrived, whenever there are more, until it is stopped.
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

// countFrames counts unmasked text frames until the connection ends. It takes one system call for what has come, not
// a second one to learn that no more is there: a read that does not fill its buffer has emptied the connection, and
// whatever comes after it wakes the reader. Its buffers are those of all readers, since most have nothing to read.
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

// readSize is more than inFlight messages of a book are together.
const readSize = 64 << 10

// frameCounter counts frames in a stream of bytes. None is masked or longer than 64 KiB.
type frameCounter struct {
	header [4]byte // what is there of a frame's
	have   int
	left   int // bytes of a frame whose header is complete
}

// count takes the next bytes of the stream and returns how many text frames end in them.
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

// sockets is a server of sockets with its readers.
type sockets struct {
	server, reader *child
	length         time.Duration // of a round

	messages   int64         // that arrived while the processor time was taken
	used, read time.Duration // by the server and by the readers
}

func (s *sockets) stop() {
	s.reader.stop()
	s.server.stop()
}

// round has messages sent for a round, and returns how many arrived in a second.
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

// each is the part of one message in a time, in microseconds.
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
