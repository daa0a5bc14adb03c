package peer

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// A frame is its length, a uint32 in big-endian order that covers the rest; its kind, one byte; its body in the form of
// package pack; and its proof.
const (
	lengthSize = 4
	proofSize  = 16
	// frameSize is the size after which a sender begins another frame. Only a single larger command or answer exceeds it.
	frameSize = 64 << 10
	// maxFrame fits the largest command and the longest record.
	maxFrame = 8 << 20
	// maxHello is the limit before the other side has proved that it is a node of the venue.
	maxHello = 4 << 10
	// maxForms fits the list of the forms of all commands of a journal.
	maxForms = 64 << 10
)

// kind is the kind of a frame.
type kind byte

// The kinds of frames, in the order in which a stream begins.
const (
	kindHello   kind = iota + 1 // node: who it is, and which shard it wants
	kindWelcome                 // owner: its term and the credit
	kindOpen                    // node: proof that it has the key
	kindOpened                  // owner: what it received over the earlier stream
	kindSubmit                  // node: commands
	kindCancel                  // node: commands whose clients are gone
	kindPing                    // node: every pingInterval
	kindAnswer                  // owner: answers
	kindPong                    // owner: its clock
	kindLeaving                 // owner: it decides nothing more over this stream
)

// direction is the direction of a frame. The proof covers it, so that a frame cannot be sent back to its sender.
type direction byte

const (
	toOwner direction = 'o'
	toNode  direction = 'n'
)

// prover computes the proofs of the frames in one direction of a stream: the first bytes of an HMAC-SHA-256.
type prover struct {
	mac       hash.Hash
	direction direction
	number    uint64 // of the next frame
	sum       [sha256.Size]byte
}

func newProver(key []byte, d direction) *prover {
	return &prover{mac: hmac.New(sha256.New, key), direction: d}
}

// prove returns the proof of the next frame. It is valid until the next call. content is the frame from its kind to the
// end of its body.
func (p *prover) prove(content []byte) []byte {
	var head [9]byte
	head[0] = byte(p.direction)
	binary.BigEndian.PutUint64(head[1:], p.number)
	p.number++
	p.mac.Reset()
	p.mac.Write(head[:])
	p.mac.Write(content)
	return p.mac.Sum(p.sum[:0])[:proofSize]
}

// appendFrame appends a frame.
func appendFrame(b []byte, p *prover, k kind, visit func(*pack.Coder)) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(k))
	b = pack.Extend(b, visit)
	b = append(b, p.prove(b[start+lengthSize:])...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-lengthSize))
	return b
}

// gatherTime is the least time between two frames of commands, or of answers, while others are on their way. A frame costs the
// owner as much as several commands, and an answer takes much longer than this. Where answers take long, commands are gathered for
// an eighth of that time, but not for longer than maxGatherTime.
const (
	gatherTime    = 200 * time.Microsecond
	maxGatherTime = 2 * time.Millisecond
)

// pause waits before a frame is written, so that it gets more content, until least has passed since last, when the frame before
// it was written. busy says that more content is likely to come.
func pause(busy bool, last time.Time, least time.Duration) {
	if left := least - time.Since(last); busy && left > 0 {
		time.Sleep(left)
		return
	}
	runtime.Gosched() // clients that were answered together send together, and commands of one acknowledgement are answered together
}

var (
	errProof = errors.New("a frame without a valid proof")
	errFrame = errors.New("an invalid frame")
)

// frames reads frames.
type frames struct {
	from   *bufio.Reader
	buffer []byte
}

func newFrames(r io.Reader) *frames { return &frames{from: bufio.NewReaderSize(r, maxHello)} }

// widen replaces the buffer by a larger one, which a stream of commands needs. It MUST be called only once the other side has
// proved that it is a node.
func (f *frames) widen() { f.from = bufio.NewReaderSize(f.from, frameSize) }

// next reads a frame without verifying it: its content, from its kind to the end of its body, and its proof. Both are
// valid until the next call.
func (f *frames) next(limit int) (content, proof []byte, err error) {
	var length [lengthSize]byte
	if _, err := io.ReadFull(f.from, length[:]); err != nil {
		return nil, nil, err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n <= proofSize || n > limit {
		return nil, nil, fmt.Errorf("%w: of %d bytes", errFrame, n)
	}
	if cap(f.buffer) < n || cap(f.buffer) > 4*frameSize && n <= frameSize {
		f.buffer = make([]byte, max(n, 4<<10))
	}
	b := f.buffer[:n]
	if _, err := io.ReadFull(f.from, b); err != nil {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return b[:n-proofSize], b[n-proofSize:], nil
}

// verified reads a frame and verifies it.
func (f *frames) verified(p *prover, limit int) (kind, []byte, error) {
	content, proof, err := f.next(limit)
	if err != nil {
		return 0, nil, err
	}
	if !hmac.Equal(proof, p.prove(content)) {
		return 0, nil, errProof
	}
	return kind(content[0]), content[1:], nil
}

// expect reads and verifies a frame of one kind and decodes its body.
func (f *frames) expect(p *prover, want kind, limit int, visit func(*pack.Coder)) error {
	got, body, err := f.verified(p, limit)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: of kind %d instead of %d", errFrame, got, want)
	}
	return pack.Read(body, visit)
}
