package peer

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

func drawMessage(t *rapid.T) message {
	text := rapid.StringN(0, 20, 40)
	m := message{number: rapid.Uint64().Draw(t, "number"), after: rapid.Bool().Draw(t, "after"), deadline: stamp(rapid.Int64().Draw(t, "deadline")),
		id: scalar.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), kind: text.Draw(t, "type"),
		actor:      decide.Actor{Sub: text.Draw(t, "sub"), Broker: text.Draw(t, "broker"), Customer: text.Draw(t, "customer"), System: text.Draw(t, "system")},
		metadata:   decide.Metadata{Key: text.Draw(t, "key"), Fingerprint: text.Draw(t, "fingerprint"), Session: scalar.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "session"))},
		credential: submit.Credential{Sequence: rapid.Int64().Draw(t, "sequence"), Principal: text.Draw(t, "principal")}}
	if rapid.Bool().Draw(t, "sourced") {
		m.metadata.Source = &decide.Source{Journal: text.Draw(t, "source"), Sequence: rapid.Int64().Draw(t, "of the source")}
	}
	if b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload"); len(b) > 0 {
		m.payload = b
	}
	return m
}

// TestMessages: commands are read from a frame as they were written.
func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawMessage), 1, 5).Draw(t, "commands")
		frame := appendFrame(nil, newProver(secret, toOwner), kindSubmit, list(&all, (*message).visit))
		var got []message
		err := newFrames(bytes.NewReader(frame)).expect(newProver(secret, toOwner), kindSubmit, maxFrame, list(&got, (*message).visit))
		if err != nil || !reflect.DeepEqual(all, got) {
			t.Fatalf("%v\n%+v\n%+v", err, all, got)
		}
	})
}

// TestProofs: a frame counts only whole, unchanged, in its place, and in its direction.
func TestProofs(t *testing.T) {
	write := func(p *prover) []byte {
		now := stamp(1)
		return appendFrame(nil, p, kindPong, visitStamp(&now))
	}
	read := func(p *prover, b []byte) error {
		var now stamp
		return newFrames(bytes.NewReader(b)).expect(p, kindPong, maxFrame, visitStamp(&now))
	}
	sender := newProver(secret, toNode)
	first, second := write(sender), write(sender)
	receiver := newProver(secret, toNode)
	if err := errors.Join(read(receiver, first), read(receiver, second)); err != nil {
		t.Fatal(err)
	}
	if err := read(receiver, second); !errors.Is(err, errProof) {
		t.Errorf("a repeated frame: %v", err)
	}
	if err := read(newProver(secret, toNode), second); !errors.Is(err, errProof) {
		t.Errorf("a frame after a missing one: %v", err)
	}
	if err := read(newProver(secret, toOwner), first); !errors.Is(err, errProof) {
		t.Errorf("a frame sent back: %v", err)
	}
	if err := read(newProver([]byte("another"), toNode), first); !errors.Is(err, errProof) {
		t.Errorf("another key: %v", err)
	}
	for i := range first {
		if err := read(newProver(secret, toNode), first[:i]); err == nil {
			t.Errorf("the first %d bytes count", i)
		}
		changed := bytes.Clone(first)
		changed[i] ^= 1
		if err := read(newProver(secret, toNode), changed); err == nil {
			t.Errorf("byte %d is not covered", i)
		}
	}
}

// FuzzFrames: what is not a frame is an error, and whatever is read is written in the same way again.
func FuzzFrames(f *testing.F) {
	for _, s := range [][]byte{nil, {1}, bytes.Repeat([]byte{0}, 80)} {
		f.Add(s)
	}
	all := []message{{number: 1, kind: "say", payload: []byte(`{"Word":"w"}`)}, {number: 2, after: true, kind: "say"}}
	f.Add(pack.Append(nil, list(&all, (*message).visit)))
	some := answers{now: 1, all: []answer{{number: 1, kind: applied, value: []byte("{}")}, {number: 2, kind: refused, refusal: decide.Refuse(decide.Conflict, "NO", "no")},
		{number: 3, kind: notAccepted, reason: "full"}, {number: 4, kind: unknown}}}
	f.Add(pack.Append(nil, some.visit))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, err := newFrames(bytes.NewReader(b)).next(maxHello)
		if err == nil && len(b) < lengthSize+proofSize {
			t.Error("a frame of nothing")
		}
		var commands []message
		var got answers
		var hi hello
		var back welcome
		var o opened
		var numbers []uint64
		for name, visit := range map[string]func(*pack.Coder){"commands": list(&commands, (*message).visit), "answers": got.visit,
			"hello": hi.visit, "welcome": back.visit, "opened": o.visit(withForms), "opened before forms": o.visit(withoutForms), "forms": visitForms(&o.forms), "numbers": visitNumbers(&numbers)} {
			if pack.Read(b, visit) != nil {
				continue
			}
			again := pack.Append(nil, visit)
			if len(again) > len(b) {
				t.Errorf("%s: %x is written as %x", name, b, again)
			}
		}
	})
}

// TestFrameLimit: a frame that is longer than its limit is not read, so that nobody has to be believed how much memory
// to take.
func TestFrameLimit(t *testing.T) {
	frame := appendFrame(nil, newProver(secret, toOwner), kindHello, func(c *pack.Coder) { c.Raw(make([]byte, maxHello)) })
	if _, _, err := newFrames(bytes.NewReader(frame)).next(maxHello); !errors.Is(err, errFrame) {
		t.Errorf("%v", err)
	}
	if _, _, err := newFrames(bytes.NewReader(frame)).next(maxFrame); err != nil {
		t.Errorf("%v", err)
	}
	if _, _, err := newFrames(bytes.NewReader(nil)).next(maxFrame); err != io.EOF {
		t.Errorf("%v", err)
	}
}
