package journal

import (
	"net"
	"sync"
	"time"
)

// writeChunk is how many bytes a progressing connection writes under one deadline.
const writeChunk = 64 << 10

// progressing is a connection with deadlines that count from the last bytes that were read or written. franz-go sets a deadline for
// a whole message, and a message that takes longer to transfer would never arrive: a reader over a slow network would fetch the same 4 MiB
// again and again. A silent broker still costs only the time of the deadline.
type progressing struct {
	net.Conn
	read, write deadline
}

// deadline is the deadline for one direction.
type deadline struct {
	mu  sync.Mutex
	set func(time.Time) error
	// within is the time that the caller has allowed, or 0 without a deadline. It began at since.
	within time.Duration
	since  time.Time
	// changes counts the calls of the caller. A call may come between a read and the extension of the read's deadline, and perhaps ends
	// the next read. The extension MUST NOT undo it.
	changes int
}

func newProgressing(c net.Conn) *progressing {
	return &progressing{Conn: c, read: deadline{set: c.SetReadDeadline}, write: deadline{set: c.SetWriteDeadline}}
}

// change sets the deadline.
func (d *deadline) change(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.within, d.since = 0, time.Now()
	if !at.IsZero() {
		d.within = max(0, at.Sub(d.since))
	}
	d.changes++
	return d.set(at)
}

// current returns the number of changes so far.
func (d *deadline) current() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

// extend lets the allowed time begin again, unless the deadline was changed since current. Most messages take a small part of the
// time, and their deadline stays.
func (d *deadline) extend(current int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.changes != current || d.within == 0 || now.Sub(d.since) < d.within/4 {
		return
	}
	d.since = now
	_ = d.set(now.Add(d.within)) // if it fails, so does the next read or write
}

// SetReadDeadline sets how long a read may take without a byte.
func (p *progressing) SetReadDeadline(at time.Time) error { return p.read.change(at) }

// SetWriteDeadline sets how long a write may take without one.
func (p *progressing) SetWriteDeadline(at time.Time) error { return p.write.change(at) }

// SetDeadline sets both.
func (p *progressing) SetDeadline(at time.Time) error {
	if err := p.read.change(at); err != nil {
		return err
	}
	return p.write.change(at)
}

// Read reads, and extends the deadline of the next read.
func (p *progressing) Read(b []byte) (int, error) {
	current := p.read.current()
	n, err := p.Conn.Read(b)
	if n > 0 {
		p.read.extend(current)
	}
	return n, err
}

// Write writes in chunks, and extends the deadline after each.
func (p *progressing) Write(b []byte) (written int, err error) {
	current := p.write.current()
	for {
		n, err := p.Conn.Write(b[:min(len(b), writeChunk)])
		written, b = written+n, b[n:]
		if err != nil || len(b) == 0 {
			return written, err
		}
		p.write.extend(current)
	}
}
