package live_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/live"
)

// rawSocket is a client that sends and reads frames byte by byte.
type rawSocket struct {
	t testing.TB
	net.Conn
	r          *bufio.Reader
	extensions []string // that the server accepted
	compressed int      // messages that came compressed
}

// dialRaw shakes hands over a plain connection, whose receive buffer has so many bytes unless it is 0, and offers extensions.
func dialRaw(t testing.TB, address string, buffer int, offers ...string) *rawSocket {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if buffer > 0 {
		err = c.(*net.TCPConn).SetReadBuffer(buffer)
	}
	if err := errors.Join(err, c.SetDeadline(time.Now().Add(4*patience))); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+u.Host+u.Path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Extensions": offers}
	if err := request.Write(c); err != nil {
		t.Fatal(err)
	}
	s := &rawSocket{t: t, Conn: c, r: bufio.NewReader(c)}
	response, err := http.ReadResponse(s.r, request)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the handshake: %v %v", response, err)
	}
	_ = response.Body.Close()
	s.extensions = response.Header.Values("Sec-Websocket-Extensions")
	return s
}

// send sends bytes one at a time, so that no header comes in one piece.
func (s *rawSocket) send(frames string) {
	s.t.Helper()
	for i := range len(frames) {
		if _, err := s.Write([]byte{frames[i]}); err != nil {
			return // the server has had enough
		}
	}
}

// masked is a frame of a client, whose mask is zero.
func masked(first byte, payload string) string {
	return string([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}) + payload
}

// frame reads a frame of the server's; io.EOF is the orderly end of the connection.
func (s *rawSocket) frame() (opcode byte, payload string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return 0, "", err
	}
	size, extended := uint64(head[1]), 0
	switch head[1] {
	case 126:
		extended = 2
	case 127:
		extended = 8
	}
	if extended > 0 {
		var b [8]byte
		if _, err := io.ReadFull(s.r, b[8-extended:]); err != nil {
			return 0, "", err
		}
		size = binary.BigEndian.Uint64(b[:])
	}
	text := make([]byte, size)
	if _, err = io.ReadFull(s.r, text); err == nil && head[0]&0x40 != 0 {
		if head[0] != 0xc1 || s.extensions == nil {
			return 0, "", fmt.Errorf("a frame begins with %x", head[0])
		}
		s.compressed++
		text, err = inflate(text)
	}
	return head[0] & 0xf, string(text), err
}

// rest reads to the end: the texts, and the code of the close frame, 0 without one, after which nothing may come.
func (s *rawSocket) rest() (texts []string, code int) {
	s.t.Helper()
	for {
		opcode, payload, err := s.frame()
		switch {
		case errors.Is(err, io.EOF):
			return texts, code
		case err != nil:
			s.t.Fatalf("after %d texts and the close code %d: %v", len(texts), code, err)
		case code != 0:
			s.t.Fatalf("a frame after the close frame: %x %q", opcode, payload)
		case opcode == 1:
			texts = append(texts, payload)
		case opcode == 8 && len(payload) >= 2:
			code = int(payload[0])<<8 | int(payload[1])
		case opcode == 8:
			code = 1005
		}
	}
}

// TestFaultsOfFrames sends what RFC 6455 forbids, and what it allows at the edge. What came before is answered, then
// the connection ends with the code that the RFC names, and in an orderly way: a reset might take the code from the client.
func TestFaultsOfFrames(t *testing.T) {
	const ping = `{"op":"ping","id":1}`
	v := newVenue(t, live.Limits{}, nil)
	for name, test := range map[string]struct {
		frames string
		code   int
	}{
		"a text that is not UTF-8":                {masked(0x81, "{\"op\":\"ping\",\"id\":\"\xff\"}"), 1007},
		"a surrogate in UTF-8":                    {masked(0x81, "\xed\xa0\x80"), 1007},
		"a fragmented text that is not UTF-8":     {masked(0x01, "\xf0\x9f") + masked(0x80, "\x98"), 1007},
		"a character cut by fragments":            {masked(0x01, "{\"op\":\"ping\",\"id\":\"\xc3") + masked(0x80, "\xa9\"}") + masked(0x88, "\x03\xe8"), 1000},
		"a close frame with one byte":             {masked(0x88, "\x03"), 1002},
		"a close frame without a code":            {masked(0x88, ""), 1005},
		"a close frame with a bad code":           {masked(0x88, "\x03\xed"), 1002},
		"a reason that is not UTF-8":              {masked(0x88, "\x03\xe8bye \xff"), 1007},
		"a reason that ends in a character":       {masked(0x88, "\x03\xe8\xe2\x82"), 1007},
		"such a reason behind a mask":             {"\x88\x83\x01\x02\x03\x04\x02\xea\xfc", 1007},
		"a reason in UTF-8":                       {masked(0x88, "\x03\xe8€"+strings.Repeat("x", 120)), 1000},
		"a close code of nobody":                  {masked(0x88, "\x03\xe7"), 1002},
		"a close code that is reserved":           {masked(0x88, "\x03\xec"), 1002},
		"a close code that means an abnormal end": {masked(0x88, "\x03\xee"), 1002},
		"a close code that means failed TLS":      {masked(0x88, "\x03\xf7"), 1002},
		"a close code of a later protocol":        {masked(0x88, "\x0b\xb7"), 1002},
		"a close code beyond all":                 {masked(0x88, "\x13\x88"), 1002},
		"a close code of a library":               {masked(0x88, "\x0b\xb8"), 3000},
		"a close code of an application":          {masked(0x88, "\x13\x87"), 4999},
		"a ping of 126 bytes":                     {"\x89\xfe\x00\x7e\x00\x00\x00\x00" + strings.Repeat("x", 126), 1002},
		"a close frame of 126 bytes":              {"\x88\xfe\x00\x7e\x00\x00\x00\x00\x03\xe8" + strings.Repeat("x", 124), 1002},
		"a fragmented ping":                       {masked(0x09, "x"), 1002},
		"a fragmented close frame":                {masked(0x08, "\x03\xe8"), 1002},
		"the first reserved bit":                  {masked(0xc1, ping), 1002},
		"the second reserved bit":                 {masked(0xa1, ping), 1002},
		"the third reserved bit":                  {masked(0x99, "x"), 1002},
		"a data frame of an unknown kind":         {masked(0x83, "x"), 1002},
		"a control frame of an unknown kind":      {masked(0x8b, "x"), 1002},
		"a continuation of nothing":               {masked(0x80, "x"), 1002},
		"a text amid a fragmented text":           {masked(0x01, "x") + masked(0x81, "x"), 1002},
		"a ping amid a fragmented text":           {masked(0x01, "{\"op\":\"ping\"") + masked(0x89, "x") + masked(0x80, "}") + masked(0x88, "\x03\xe8"), 1000},
		"a length with its top bit set":           {"\x81\xff\x80\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00x", 1002},
		"a binary of such a length":               {"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00x", 1002},
		"a length that is merely very large":      {"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00x", 1009},
		"a ping of one byte, and of 125":          {masked(0x89, "x") + masked(0x89, strings.Repeat("x", 125)) + masked(0x88, "\x03\xe8"), 1000},
		"a frame without a mask":                  {"\x81\x02{}", 1002},
		"a length of 16 bits, then one byte":      {"\x81\xfe\x00\x14\x00\x00\x00\x00" + ping + masked(0x88, "\x03"), 1002},
		"a length of 64 bits, then the top bit":   {"\x81\xff\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00" + ping + "\x89\xff\x80", 1002},
	} {
		t.Run(name, func(t *testing.T) {
			s := dialRaw(t, v.url, 0)
			s.send(masked(0x81, ping) + test.frames)
			texts, code := s.rest()
			if code != test.code || len(texts) == 0 || texts[0] != `{"op":"pong","id":1}` {
				t.Errorf("closed with %d after %q, want %d", code, texts, test.code)
			}
		})
	}
}

// TestWhoDoesNotReadIsTold lets a client over a real connection stop to read, in each of the ways in which the server can
// notice. However long it does not read, it then finds a part of what was sent, without a hole, and why it was closed.
func TestWhoDoesNotReadIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		limits live.Limits
		offers []string
	}{
		"its queue is full":               {live.Limits{QueueMessages: 100, WriteWait: patience}, nil},
		"its compressed queue is full":    {live.Limits{QueueMessages: 100, WriteWait: patience}, []string{deflateOffer}},
		"a write does not end":            {live.Limits{WriteWait: 50 * time.Millisecond}, nil},
		"a compressed write does not end": {live.Limits{WriteWait: 50 * time.Millisecond}, []string{deflateOffer}},
		"the queue is full, and kept":     {live.Limits{QueueMessages: 100, WriteWait: 50 * time.Millisecond}, nil},
		"no pong comes": {
			live.Limits{PingEvery: 20 * time.Millisecond, PongWait: time.Second, WriteWait: patience}, nil,
		},
		"no pong, and no write either": {
			live.Limits{PingEvery: 20 * time.Millisecond, PongWait: time.Second, WriteWait: 50 * time.Millisecond}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for !toldWhy(t, test.limits, test.offers...) {
				if test.limits.PongWait *= 2; test.limits.PongWait == 0 || test.limits.PongWait > patience {
					t.Fatal("closed before anything was sent")
				}
			}
		})
	}
}

// cramped returns a venue with a client that asked for a book, where hardly anything fits between the two, and the venue's measures.
// The client offers extensions.
func cramped(t *testing.T, limits live.Limits, offers ...string) (*venue, *rawSocket, *prometheus.Registry) {
	t.Helper()
	const room = 4096
	v := newVenue(t, limits, func(c net.Conn) net.Conn {
		_ = c.(*net.TCPConn).SetWriteBuffer(room)
		return c
	}, compressing)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	s := dialRaw(t, v.url, room, offers...)
	s.send(masked(0x81, `{"op":"subscribe","args":["orderbook-stream:`+btc+`"],"data":{"positions":true}}`))
	return v, s, registry
}

// toldWhy has a client not read, and be told so. On a busy machine it may have missed a pong before the test got to anything, which
// is reported as false.
func toldWhy(t *testing.T, limits live.Limits, offers ...string) bool {
	t.Helper()
	v, s, registry := cramped(t, limits, offers...)
	if !s.texts(2) { // the acknowledgement and the snapshot
		return false
	}
	for n := 0; gather(t, registry)["perpetua_live_slow_consumers_total"] == 0; n++ {
		if gather(t, registry)["perpetua_live_sessions"] == 0 && gather(t, registry)["perpetua_live_slow_consumers_total"] == 0 {
			t.Fatalf("cut after %d updates, and not a word", n)
		}
		if n < 600 || limits.QueueMessages > 0 {
			v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
		} else { // more would fill the queue before anything else is noticed
			<-time.After(time.Millisecond)
		}
	}
	for end := time.Now().Add(8 * 50 * time.Millisecond); time.Now().Before(end); { // longer than any wait but SlowWait
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	texts, code := s.rest()
	if code != 1008 || len(texts) == 0 || !strings.Contains(texts[len(texts)-1], `"code":"SLOW_CONSUMER"`) {
		t.Fatalf("closed with %d after %d texts", code, len(texts))
	}
	inTurn(t, texts[:len(texts)-1])
	if (s.compressed > 0) != (offers != nil) {
		t.Errorf("%d messages came compressed to a client that offers %q", s.compressed, offers)
	}
	if n := gather(t, registry)["perpetua_live_queued_messages"]; n != 0 {
		t.Errorf("%v messages count as queued", n)
	}
	return true
}

// texts reads so many texts, and what comes between; false if the connection is closed first, or about to be.
func (s *rawSocket) texts(n int) bool {
	s.t.Helper()
	for n > 0 {
		opcode, payload, err := s.frame()
		switch {
		case err != nil:
			s.t.Fatal(err)
		case opcode == 8 || strings.Contains(payload, `"code":"SLOW_CONSUMER"`):
			return false
		case opcode == 1:
			n--
		}
	}
	return true
}

// inTurn wants each update of the book to follow the one before it.
func inTurn(t *testing.T, texts []string) {
	t.Helper()
	last := int64(-1)
	for _, text := range texts {
		m, err := parseMessage([]byte(text))
		if err != nil || last >= 0 && m.PrevSequence != last {
			t.Fatalf("after %d: %s %v", last, text, err)
		}
		last = m.Sequence
	}
}

// TestStoppingCutsWhoIsKept stops a server that keeps the connection of a slow client to tell it why: it does not wait as long as it
// would keep it.
func TestStoppingCutsWhoIsKept(t *testing.T) {
	for name, limits := range map[string]live.Limits{
		"a write does not end": {WriteWait: 50 * time.Millisecond},
		"no pong comes":        {PingEvery: 20 * time.Millisecond, PongWait: 100 * time.Millisecond, WriteWait: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			limits.SlowWait = 2 * patience
			v, _, registry := cramped(t, limits)
			for gather(t, registry)["perpetua_live_slow_consumers_total"] == 0 {
				v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
			}
			// Where a write does not end the connection takes no more, the last word included, so it is there. One that missed a pong
			// may have taken that word.
			if n := gather(t, registry)["perpetua_live_sessions"]; n != 1 && limits.PongWait == 0 {
				t.Errorf("%v connections are kept", n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := v.hub.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
