package journal

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slowly makes a connection, whose other end is served by a function until that returns.
func slowly(t *testing.T, serve func(far net.Conn)) *progressing {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(far)
	}()
	t.Cleanup(func() {
		near.Close()
		far.Close()
		<-done
	})
	return newProgressing(near)
}

// TestASlowMessage takes longer than its deadline to read, and is read. Once nothing comes, the deadline is over after its time.
func TestASlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts = 20
		c := slowly(t, func(far net.Conn) {
			for range parts {
				time.Sleep(time.Second)
				if _, err := far.Write(make([]byte, 10)); err != nil {
					return
				}
			}
		})
		start := time.Now()
		if err := c.SetReadDeadline(start.Add(1500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := io.ReadFull(c, make([]byte, parts*10+1))
		if took := time.Since(start); n != parts*10 || !errors.Is(err, os.ErrDeadlineExceeded) || took < 21*time.Second || took > parts*time.Second+1500*time.Millisecond {
			t.Errorf("%d bytes after %v: %v", n, took, err)
		}
	})
}

// TestASlowWrite takes longer than its deadline.
func TestASlowWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks = 20
		c := slowly(t, func(far net.Conn) {
			for range chunks {
				time.Sleep(time.Second)
				if _, err := io.ReadFull(far, make([]byte, writeChunk)); err != nil {
					return
				}
			}
		})
		start := time.Now()
		if err := c.SetDeadline(start.Add(1500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Write(make([]byte, (chunks+1)*writeChunk))
		if took := time.Since(start); n != chunks*writeChunk || !errors.Is(err, os.ErrDeadlineExceeded) || took > chunks*time.Second+1500*time.Millisecond {
			t.Errorf("%d bytes after %v: %v", n, took, err)
		}
	})
}

// TestAReadThatIsEnded by a deadline in the past ends although bytes came a moment ago.
func TestAReadThatIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slowly(t, func(far net.Conn) {
			time.Sleep(time.Second)
			_, _ = far.Write([]byte("x"))
		})
		start := time.Now()
		if err := c.SetReadDeadline(start.Add(1500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		current := c.read.current()
		if n, err := c.Conn.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if err := c.SetReadDeadline(time.Now()); err != nil { // before Read extends it
			t.Fatal(err)
		}
		c.read.extend(current)
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%d bytes after %v: %v", n, time.Since(start), err)
		}
	})
}
