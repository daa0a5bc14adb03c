package live

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a connection that keeps what is written to it, write by write.
type recorder struct {
	net.Conn
	writes    [][]byte
	deadlines []time.Time
	closed    bool
}

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

func (r *recorder) Close() error {
	r.closed = true
	return nil
}

// TestWritesAreGathered writes messages as the library does, some with others behind them.
func TestWritesAreGathered(t *testing.T) {
	long := textFrame(bytes.Repeat([]byte{0x81}, 5000)) // whose second part looks like the beginning of a frame
	ping := []byte{0x89, 0}
	for name, test := range map[string]struct {
		write   func(c *conn, follows *bool)
		written []string // in each call
	}{
		"one at a time": {func(c *conn, _ *bool) { put(c, textFrame([]byte("a")), textFrame([]byte("b"))) },
			[]string{"\x81\x01a", "\x81\x01b"}},
		"together": {func(c *conn, follows *bool) {
			*follows = true
			put(c, textFrame([]byte("a")), textFrame([]byte("b")))
			*follows = false
			put(c, textFrame([]byte("c")))
		}, []string{"\x81\x01a\x81\x01b\x81\x01c"}},
		"a ping behind a message": {func(c *conn, follows *bool) {
			*follows = true
			put(c, textFrame([]byte("a")), ping)
		}, []string{"\x81\x01a\x89\x00"}},
		"a long message in two parts": {func(c *conn, _ *bool) { put(c, long[:4096], long[4096:], ping) },
			[]string{string(long), string(ping)}},
		"no more than is good": {func(c *conn, follows *bool) {
			*follows = true
			for range 10 {
				put(c, long)
			}
			*follows = false
			put(c, ping)
		}, []string{strings.Repeat(string(long), 7), strings.Repeat(string(long), 3) + string(ping)}},
		"at the end": {func(c *conn, follows *bool) {
			*follows = true
			put(c, textFrame([]byte("a")))
			_ = c.Close()
		}, []string{"\x81\x01a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var below recorder
			follows := false
			c := &conn{Conn: &below, follows: func() bool { return follows }, out: gathered{pool: &sync.Pool{}}, tooBig: func() []byte { return nil }}
			deadline := time.Unix(1_000_000, 0)
			_ = c.SetWriteDeadline(deadline)
			test.write(c, &follows)
			if len(below.writes) != len(test.written) {
				t.Fatalf("%d writes, want %d: %q", len(below.writes), len(test.written), below.writes)
			}
			for i, w := range below.writes {
				if string(w) != test.written[i] {
					t.Errorf("write %d is %q, want %q", i, w, test.written[i])
				}
				if !below.deadlines[i].Equal(deadline) {
					t.Errorf("write %d has the deadline %v", i, below.deadlines[i])
				}
			}
		})
	}
}

func put(c *conn, frames ...[]byte) {
	for _, f := range frames {
		_, _ = c.Write(f)
	}
}
