package bench

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

// socketReady says where the server listens, where it wants to hear what has arrived, and what a message is.
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
	go p.hear()
	return p, nil
}

func (p *pace) hear() {
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

// serve sends for each length of time asked for and answers how many messages a second arrived.
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
		if err := out.Encode(float64(p.arrived.Load()-before) / time.Since(start).Seconds()); err != nil {
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
	var reading sync.WaitGroup
	for range cfg.Sockets {
		c, answer, err := websocket.DefaultDialer.DialContext(ctx, cfg.URL, http.Header{})
		if err != nil {
			return err
		}
		answer.Body.Close()
		defer c.Close()
		if cfg.Subscribe != "" {
			if err := c.WriteMessage(websocket.TextMessage, []byte(cfg.Subscribe)); err != nil {
				return err
			}
		}
		for range cfg.Skip {
			if _, _, err := c.ReadMessage(); err != nil {
				return err
			}
		}
		reading.Go(func() { countFrames(c.NetConn(), &arrived) })
	}
	report, err := net.Dial("tcp", cfg.Pace)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	reading.Go(func() {
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
	})
	err = out.Encode(struct{}{})
	if err == nil {
		err = in.Decode(new(struct{})) // nothing more comes
	}
	close(stop)
	return errors.Join(err, report.Close())
}

// countFrames counts unmasked text frames until the connection ends.
func countFrames(c net.Conn, arrived *atomic.Int64) {
	buffer := make([]byte, 64<<10)
	have := 0
	for {
		n, err := c.Read(buffer[have:])
		if err != nil {
			return
		}
		have += n
		used, text := 0, int64(0)
		for {
			size := frameSize(buffer[used:have])
			if size == 0 || used+size > have {
				break
			}
			if buffer[used] == 0x81 {
				text++
			}
			used += size
		}
		have = copy(buffer, buffer[used:have])
		arrived.Add(text)
	}
}

// frameSize returns the length of the frame that begins the buffer, 0 if not enough of it is there to tell.
func frameSize(b []byte) int {
	switch {
	case len(b) < 4:
		return 0
	case b[1] < 126:
		return 2 + int(b[1])
	}
	return 4 + int(b[2])<<8 + int(b[3]) // none here is longer than 64 KiB
}

// measureSockets measures how many messages reach a thousand sockets that read one book.
func measureSockets(ctx context.Context, b *bench) error {
	hub, message, stopHub, err := b.socketServer(ctx, "hub", nil, `{"op":"subscribe","args":["orderbook-stream:`+symbol+`"]}`, 2)
	if err != nil {
		return err
	}
	defer stopHub()
	melody, _, stopMelody, err := b.socketServer(ctx, "melody", message, "", 0)
	if err != nil {
		return err
	}
	defer stopMelody()
	if err := b.pair(Row{Measure: fmt.Sprintf("messages delivered to %d sockets", b.sockets), Unit: "messages/s", Against: "melody's own broadcast", Aim: atLeast(5)},
		hub, melody); err != nil {
		return err
	}
	b.rows[len(b.rows)-1].Note = fmt.Sprintf("messages of %d bytes, one a record, without the write path: its records are decided in memory", len(message))
	return nil
}

// socketServer starts a server of sockets and its readers.
func (b *bench) socketServer(ctx context.Context, name string, message []byte, subscribe string, skip int) (func() (float64, error), []byte, func(), error) {
	var ready socketReady
	server, err := b.child(ctx, name, socketConfig{b.sockets, message}, &ready)
	if err != nil {
		return nil, nil, nil, err
	}
	reader, err := b.child(ctx, "socket-reader", readerConfig{ready.URL, ready.Pace, b.sockets, subscribe, skip}, new(struct{}))
	if err != nil {
		server.stop()
		return nil, nil, nil, err
	}
	return func() (rate float64, err error) {
		err = server.call(b.round, &rate)
		return rate, err
	}, ready.Message, func() { reader.stop(); server.stop() }, nil
}
