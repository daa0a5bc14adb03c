package peer

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// cutConn is the owner's end of a connection that breaks after a number of bytes in one direction.
type cutConn struct {
	net.Conn
	read, write *atomic.Int64 // bytes left
}

func cutAt(left *atomic.Int64, c net.Conn, b []byte, move func([]byte) (int, error)) (int, error) {
	n := left.Load()
	if n <= 0 {
		c.Close()
		return 0, net.ErrClosed
	}
	if int64(len(b)) > n {
		b = b[:n]
	}
	moved, err := move(b)
	left.Add(-int64(moved))
	return moved, err
}

func (c *cutConn) Read(b []byte) (int, error) { return cutAt(c.read, c.Conn, b, c.Conn.Read) }

func (c *cutConn) Write(b []byte) (int, error) {
	n, err := cutAt(c.write, c.Conn, b, c.Conn.Write)
	if err == nil && n < len(b) {
		c.Conn.Close()
		err = net.ErrClosed
	}
	return n, err
}

// cutStep is the number of bytes between two places at which TestCut breaks a connection. With TEST_ALL_CUTS it breaks one at
// every byte.
const cutStep int64 = 23

// TestCut: wherever a connection breaks, before, within and after each frame, no command is
// decided twice, none that was decided is answered as not accepted, none that was not is answered as applied, and all are
// answered. Later connections work.
func TestCut(t *testing.T) {
	const whole = 1 << 40
	var once, total atomic.Int64
	try := func(t *testing.T, toOwner, toNode int64) (read, written int64) {
		synctest.Test(t, func(t *testing.T) {
			o := newOwner(t)
			if (toOwner+toNode)%2 == 0 {
				o.delay = time.Second // the connection breaks before the owner decides
			}
			p := newPair(t, o)
			first := &cutConn{read: new(atomic.Int64), write: new(atomic.Int64)}
			first.read.Store(toOwner)
			first.write.Store(toNode)
			p.network.wrap = func(node, owner net.Conn) (net.Conn, net.Conn) {
				if first.Conn == nil {
					first.Conn = owner
					return node, first
				}
				return node, owner
			}
			check := func(cs []decide.Command, out []submit.Outcome) {
				for i, c := range cs {
					n := o.count(c.ID)
					switch err := out[i].Err; {
					case n > 1, err == nil && n != 1, isNotAccepted(err) && n != 0, err != nil && !isNotAccepted(err) && !isUnknown(err):
						t.Errorf("cut after %d and %d bytes: decided %d times, and answered %v", toOwner, toNode, n, err)
					case err == nil && out[i].Result.Entry.Record.Command.ID != c.ID:
						t.Errorf("cut after %d and %d bytes: another record", toOwner, toNode)
					case err == nil:
						once.Add(1)
					}
					total.Add(1)
				}
			}
			var all sync.WaitGroup
			for i := range 6 {
				cs := []decide.Command{command(fmt.Sprint(i)), command(fmt.Sprint(i, "b"))}
				all.Go(func() { check(cs, p.SubmitAll(t.Context(), testJournal, cs)) })
				if i%2 == 0 {
					synctest.Wait()
				}
			}
			all.Wait()
			applied := 0
			for range 2 { // the first may be the one whose connection breaks
				next := []decide.Command{command("next")}
				out := p.SubmitAll(t.Context(), testJournal, next)
				check(next, out)
				if out[0].Err == nil {
					applied++
				}
			}
			if applied == 0 {
				t.Errorf("cut after %d and %d bytes: no later command is applied", toOwner, toNode)
			}
			read, written = toOwner-first.read.Load(), toNode-first.write.Load()
		})
		return read, written
	}
	read, written := try(t, whole, whole)
	if once.Load() != total.Load() {
		t.Fatalf("without a cut, %d of %d commands are answered", once.Load(), total.Load())
	}
	step := cutStep
	if os.Getenv("TEST_ALL_CUTS") != "" {
		step = 1
	}
	first := 1 + rand.Int64N(step)
	t.Logf("cut after %d bytes, and then every %d", first, step)
	for n := first; n < read; n += step {
		try(t, n, whole)
	}
	for n := first; n < written; n += step {
		try(t, whole, n)
	}
	t.Logf("%d of %d commands were applied, over %d and %d bytes", once.Load(), total.Load(), read, written)
}
