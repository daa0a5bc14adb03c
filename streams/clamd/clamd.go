// Package clamd asks a ClamAV daemon whether a stream contains malware. It uses the daemon's INSTREAM command
// (clamd(8)): the stream is sent in pieces, each preceded by its length in four bytes, big-endian; an empty piece ends
// it; the daemon answers with one line.
//
// A scan reports a stream as clean only if the daemon said so. In every other case (no daemon, no answer in time, an
// answer that cannot be parsed) it returns ErrAway, so that a missing verdict never counts as one.
package clamd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// ErrAway reports that the daemon gave no verdict.
var ErrAway = errors.New("the scanner gives no verdict")

// Limits bound the time spent waiting for a daemon.
type Limits struct {
	Dial    time.Duration // to connect
	Write   time.Duration // to send a piece
	Verdict time.Duration // from the end of the stream to the verdict
}

// DefaultLimits returns limits long enough for a daemon that scans many large files concurrently.
func DefaultLimits() Limits {
	return Limits{Dial: 5 * time.Second, Write: 10 * time.Second, Verdict: time.Minute}
}

// Scanner connects to one daemon. It is safe for concurrent use.
type Scanner struct {
	network, address string
	limits           Limits
}

// New returns a scanner for the daemon at a URL: tcp://host:port or unix:///path/of/the/socket. It does not connect.
func New(at string, limits Limits) (*Scanner, error) {
	u, err := url.Parse(at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("scanner: %w", err)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "" && u.Path == "":
		return &Scanner{"tcp", u.Host, limits}, nil
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		return &Scanner{"unix", u.Path, limits}, nil
	}
	return nil, fmt.Errorf("scanner: it is tcp://host:port or unix:///path, not %q", at)
}

// Scan sends one stream to a daemon.
type Scan struct {
	conn   net.Conn
	stop   func() bool // stops watching the context
	ctx    context.Context
	limits Limits
	failed error
	length [4]byte     // length field of the current piece
	pieces [2][]byte   // buffers being sent
	unsent net.Buffers // unsent part of pieces
}

// maxPiece is the largest size of a piece in bytes.
const maxPiece = 256 << 10

// Begin connects to the daemon and starts a scan. The scan ends with the context or with Close.
func (s *Scanner) Begin(ctx context.Context) (*Scan, error) {
	conn, err := (&net.Dialer{Timeout: s.limits.Dial}).DialContext(ctx, s.network, s.address)
	if err != nil {
		return nil, away(err)
	}
	scan := &Scan{conn: conn, ctx: ctx, limits: s.limits, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	if err := scan.send([]byte("zINSTREAM\x00")); err != nil {
		scan.Close()
		return nil, err
	}
	return scan, nil
}

// Write sends more of the stream. It fails if the daemon has stopped reading; Verdict then returns the reason.
func (s *Scan) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		piece := b[:min(len(b), maxPiece)]
		binary.BigEndian.PutUint32(s.length[:], uint32(len(piece)))
		if err := s.send(s.length[:], piece); err != nil {
			return written, err
		}
		written += len(piece)
		b = b[len(piece):]
	}
	return written, nil
}

// send writes up to two buffers in one call. After an error it always returns that error.
func (s *Scan) send(pieces ...[]byte) error {
	if s.failed != nil {
		return s.failed
	}
	s.unsent = append(s.pieces[:0], pieces...)
	err := s.conn.SetWriteDeadline(time.Now().Add(s.limits.Write))
	if err == nil {
		_, err = s.unsent.WriteTo(s.conn)
	}
	if err != nil {
		s.failed = s.away(err)
	}
	return s.failed
}

// maxAnswer bounds an answer, in bytes: signature names are short.
const maxAnswer = 4 << 10

// Verdict ends the stream and returns the name of the malware found in it, or "" if it is clean.
func (s *Scan) Verdict() (found string, err error) {
	sent, within := s.send(make([]byte, 4)), s.limits.Verdict
	if sent != nil { // A daemon that stopped reading has sent its reason before, so a short time to read it suffices.
		within = s.limits.Write
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", s.away(err)
	}
	answer, err := bufio.NewReader(io.LimitReader(s.conn, maxAnswer)).ReadString(0)
	switch {
	case err == nil:
		return verdict(strings.TrimSuffix(answer, "\x00"), sent)
	case !errors.Is(err, io.EOF), s.ctx.Err() != nil:
		return "", s.away(err)
	}
	return "", away(errors.Join(fmt.Errorf("its answer breaks off: %.100q", answer), sent))
}

// verdict parses the daemon's answer: "stream: OK", "stream: NAME FOUND" or a line with ERROR. If sending failed, OK
// does not count.
func verdict(line string, sent error) (string, error) {
	text, ours := strings.CutPrefix(line, "stream: ")
	if name, found := strings.CutSuffix(text, " FOUND"); ours && found && name != "" {
		return name, nil
	}
	if ours && text == "OK" && sent == nil {
		return "", nil
	}
	return "", away(errors.Join(fmt.Errorf("it says %.100q", line), sent))
}

// away returns the reason for a missing verdict. If the context has ended, that is the reason: its end closes the
// connection, which causes various errors.
func (s *Scan) away(err error) error {
	if gone := s.ctx.Err(); gone != nil {
		err = gone
	}
	return away(err)
}

// Close ends the scan, whether or not there was a verdict.
func (s *Scan) Close() error {
	s.stop()
	return s.conn.Close()
}

func away(err error) error { return fmt.Errorf("%w: %w", ErrAway, err) }
