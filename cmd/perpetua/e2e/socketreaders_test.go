package e2e

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// payloads is what a socket got: how many messages and bytes, and a checksum over all of them in their order.
type payloads struct {
	messages, bytes int64
	sum             uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p *payloads) add(b []byte) {
	p.bytes += int64(len(b))
	p.sum = crc32.Update(p.sum, castagnoli, b)
}

// checkingSocket rebuilds the book and looks at each message.
type checkingSocket struct {
	socket   *websocket.Conn
	messages atomic.Int64 // after the snapshot
	sequence atomic.Int64

	mu   sync.Mutex
	book bookStream
	sum  payloads
}

// begin subscribes to the book and takes in its snapshot.
func (c *checkingSocket) begin() error {
	request, err := c.book.begin(nil)
	if err != nil {
		return err
	}
	request.Op = "subscribe"
	if err := c.socket.WriteJSON(request); err != nil {
		return err
	}
	_, raw, err := c.socket.ReadMessage()
	if err != nil {
		return err
	}
	var ack livetest.Message
	if err := json.Unmarshal(raw, &ack); err != nil || ack.Op != "subscribed" {
		return fmt.Errorf("the subscription was answered with %s", raw)
	}
	if _, raw, err = c.socket.ReadMessage(); err != nil {
		return err
	}
	return c.take(raw)
}

// take takes a snapshot or an update in.
func (c *checkingSocket) take(raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.book.take(raw)
	if err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	c.sequence.Store(t.sequence)
	return nil
}

// read reads updates until the connection ends.
func (c *checkingSocket) read() error {
	for {
		_, raw, err := c.socket.ReadMessage()
		if err != nil {
			return fmt.Errorf("a socket that checks: %w", err)
		}
		if err := c.take(raw); err != nil {
			return err
		}
		c.mu.Lock()
		c.sum.messages++
		c.sum.add(raw)
		c.mu.Unlock()
		c.messages.Add(1)
	}
}

// countingSocket takes a checksum of what comes and answers pings.
type countingSocket struct {
	c        net.Conn
	messages atomic.Int64

	mu     sync.Mutex
	frames frameReader
}

// pong is a masked pong frame without a payload.
var pong = []byte{0x8a, 0x80, 0, 0, 0, 0}

// read reads frames until the connection ends.
func (c *countingSocket) read() error {
	buffer := make([]byte, 8<<10)
	for {
		n, err := c.c.Read(buffer)
		if err != nil {
			return fmt.Errorf("a socket that counts: %w", err)
		}
		c.mu.Lock()
		pinged, err := c.frames.take(buffer[:n])
		messages := c.frames.messages
		c.mu.Unlock()
		if err != nil {
			return fmt.Errorf("a socket that counts: %w", err)
		}
		c.messages.Store(messages)
		if pinged {
			if _, err := c.c.Write(pong); err != nil {
				return err
			}
		}
	}
}

func (c *countingSocket) settled() payloads {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames.payloads
}

// frameReader cuts a stream of bytes into the frames of a server and adds up the payloads of text frames.
type frameReader struct {
	payloads
	header [4]byte // what is there of a frame's
	have   int
	left   int // bytes of a frame whose header is complete
}

// The frames that come: whole messages of text, and pings.
const (
	textHeader = 0x81
	pingHeader = 0x89
)

// take takes the next bytes, and reports whether a ping ended among them.
func (f *frameReader) take(b []byte) (pinged bool, err error) {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			if f.header[0] == textHeader {
				f.add(b[:n])
			}
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
		switch {
		case f.header[0] != textHeader && f.header[0] != pingHeader || f.header[1] > 126:
			return false, fmt.Errorf("a frame that begins with %x", f.header)
		case f.left == 0 && f.header[0] == textHeader:
			f.messages++
		case f.left == 0:
			pinged = true
		}
	}
	return pinged, nil
}
