// Package clamd asks a ClamAV daemon whether a stream holds something that harms, in its INSTREAM form (clamd(8)): the
// stream is sent in pieces, each behind its length in four bytes, big-endian, and an empty piece ends it; the daemon
// answers one line.
//
// A scan says clean only where the daemon has said so. Everything else (no daemon, no answer in time, an answer that is
// not understood) is ErrAway, so that who has to know is never told what nobody found out.
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

// ErrAway says that the daemon gave no verdict.
var ErrAway = errors.New("the scanner gives no verdict")

// Limits bound how long a daemon is waited for.
type Limits struct {
	Dial    time.Duration // until it is connected
	Write   time.Duration // until it takes a piece
	Verdict time.Duration // from the end of the stream to its answer
}

// DefaultLimits are long enough for a daemon that scans many large files at once.
func DefaultLimits() Limits {
	return Limits{Dial: 5 * time.Second, Write: 10 * time.Second, Verdict: time.Minute}
}

// Scanner is a daemon. It is safe for concurrent use.
type Scanner struct {
	network, address string
	limits           Limits
}

// New returns the daemon at a URL: tcp://host:port or unix:///path/of/the/socket. Nothing is connected yet.
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

// Scan is one stream on its way to a daemon.
type Scan struct {
	conn   net.Conn
	stop   func() bool // the watch of the context
	ctx    context.Context
	limits Limits
	failed error
	length [4]byte     // of the piece that is sent
	pieces [2][]byte   // that are sent
	unsent net.Buffers // of them
}

// maxPiece is how many bytes are sent behind one length.
const maxPiece = 256 << 10

// Begin connects. The scan ends with the context; Close ends it before that.
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

// Write sends more of the stream. A daemon that has heard enough may stop listening: Verdict tells why.
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

// send writes up to two pieces at once. The first error stays.
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

// maxAnswer is how long an answer may be, in bytes: names of signatures are short.
const maxAnswer = 4 << 10

// Verdict ends the stream and returns the name of what was found in it, "" for nothing.
func (s *Scan) Verdict() (found string, err error) {
	sent, within := s.send(make([]byte, 4)), s.limits.Verdict
	if sent != nil { // a daemon that hears no more has said why before: its answer is read, not waited for
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

// verdict reads the daemon's answer: "stream: OK", "stream: NAME FOUND" or anything with ERROR. An answer to a stream
// that could not be sent whole clears nothing.
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

// away is why there is no verdict. The end of the context closes the connection, in whichever way that shows first.
func (s *Scan) away(err error) error {
	if gone := s.ctx.Err(); gone != nil {
		err = gone
	}
	return away(err)
}

// Close ends the scan, with or without a verdict.
func (s *Scan) Close() error {
	s.stop()
	return s.conn.Close()
}

func away(err error) error { return fmt.Errorf("%w: %w", ErrAway, err) }
