package decide

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// asked is a request with a key as its client sees it: on a route that makes a type of command.
type asked struct{ broker, kind, route, key, content string }

// command is what a node makes of a request: one that tells routes apart, or one of an older build.
func (a asked) command(tellsRoutes bool) Command {
	c := Command{Type: a.kind, Actor: Actor{Broker: a.broker}, Metadata: Metadata{Key: a.key,
		Fingerprint: strings.Repeat("0", contentDigits-1) + a.content}}
	if a.route == "only" { // the route is part of what is asked for, in either build
		return c
	}
	c.Metadata.Fingerprint = strings.Repeat(a.route, contentDigits-1) + a.content
	if tellsRoutes {
		c.Metadata.Fingerprint = OfRoute(a.route, c.Metadata.Fingerprint)
	}
	return c
}

func requests(r *rapid.T) asked {
	routes := map[string][]string{"place": {"only"}, "cancel": {"a", "b", "c"}}
	kind := rapid.SampledFrom([]string{"place", "cancel"}).Draw(r, "command")
	return asked{rapid.SampledFrom([]string{"alpha", "beta"}).Draw(r, "broker"), kind, rapid.SampledFrom(routes[kind]).Draw(r, "route"),
		rapid.SampledFrom([]string{"k", "l"}).Draw(r, "key"), rapid.SampledFrom([]string{"1", "2"}).Draw(r, "content")}
}

// said is the outcome of a command: the sequence of the record that answers it, -1 where the key was used for another
// request.
func said(m *Memory, now scalar.Time, sequence int64, c Command) (answer int64, recorded bool) {
	d, repeated, err := m.Lookup(now, c)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return -1, false
	case repeated:
		return d.Repeat, false
	}
	m.Note(Stamp{Sequence: sequence, Time: now}, c.Recorded())
	return sequence, true
}

// reloaded is a memory as a snapshot has it.
func reloaded(r *rapid.T, m *Memory) *Memory {
	read, saved := new(Memory), pack.Append(nil, m.visit)
	if err := pack.Read(saved, read.visit); err != nil {
		r.Fatal(err)
	}
	if again := pack.Append(nil, read.visit); string(again) != string(saved) {
		r.Fatalf("%x is read back and written as %x", saved, again)
	}
	return read
}

// TestKeysAreTheRoutesOwn holds a memory against what the interface promises: within 24 hours, by broker and route, the
// same request has its first answer and another with its key is refused; and nothing else is.
func TestKeysAreTheRoutesOwn(t *testing.T) {
	type scope struct{ broker, kind, route, key string }
	type first struct {
		content string
		answer  int64
		time    scalar.Time
	}
	rapid.Check(t, func(r *rapid.T) {
		m, now, model := new(Memory), scalar.Hour, make(map[scope]first)
		for n := range rapid.Int64Range(1, 60).Draw(r, "requests") {
			now += scalar.Time(rapid.Int64Range(0, 5).Draw(r, "hours")) * scalar.Hour
			if rapid.IntRange(0, 3).Draw(r, "reload") == 0 {
				m = reloaded(r, m)
			}
			q := requests(r)
			at := scope{q.broker, q.kind, q.route, q.key}
			used, known := model[at]
			want := n
			switch {
			case !known || now-used.time >= Remember:
				model[at] = first{q.content, n, now}
			case used.content == q.content:
				want = used.answer
			default:
				want = -1
			}
			if got, _ := said(m, now, n, q.command(true)); got != want {
				r.Fatalf("request %d %+v is answered by %d, want %d", n, q, got, want)
			}
		}
	})
}

// before is what a build remembers that does not tell routes apart.
type before map[memoryKey]remembered

func (b before) recall(now scalar.Time, c Command) (answer int64, found bool) {
	r, found := b[memoryKey{c.Actor.Broker, c.Type, c.Metadata.Key}]
	if found = found && now-r.time < Remember; found && r.fingerprint != c.Metadata.Fingerprint {
		return -1, true
	}
	return r.sequence, found
}

// TestKeysWhileNodesAreUpgraded: whichever build takes a request, and whichever builds own the journal one after the
// other, none takes effect twice within 24 hours, and whatever is answered again has the first answer.
func TestKeysWhileNodesAreUpgraded(t *testing.T) {
	type effect struct {
		answer int64
		time   scalar.Time
	}
	rapid.Check(t, func(r *rapid.T) {
		m, old, now, effects := new(Memory), make(before), scalar.Hour, make(map[asked]effect)
		for n := range rapid.Int64Range(1, 60).Draw(r, "requests") {
			now += scalar.Time(rapid.Int64Range(0, 5).Draw(r, "hours")) * scalar.Hour
			q := requests(r)
			c := q.command(rapid.Bool().Draw(r, "taken by a newer node"))
			answer, found := n, true
			if rapid.Bool().Draw(r, "owned by a newer node") {
				if d, repeated, err := m.Lookup(now, c); err != nil {
					answer = -1
				} else if found = repeated; found {
					answer = d.Repeat
				}
			} else {
				answer, found = old.recall(now, c)
			}
			first, known := effects[q]
			if known = known && now-first.time < Remember; !found {
				if known {
					r.Fatalf("%d: %+v takes effect again after %d", n, q, first.answer)
				}
				effects[q] = effect{n, now}
				m.Note(Stamp{Sequence: n, Time: now}, c.Recorded())
				old[memoryKey{q.broker, q.kind, q.key}] = remembered{c.Metadata.Fingerprint, n, now}
			} else if answer >= 0 && (!known || answer != first.answer) {
				r.Fatalf("%d: %+v has the answer of %d, which is not its own (%+v)", n, q, answer, first)
			}
		}
	})
}

// TestAKeyUsedBeforeRoutesWereToldApart is still the same request's, and is refused to every other, whichever route
// that is on.
func TestAKeyUsedBeforeRoutesWereToldApart(t *testing.T) {
	var m Memory
	persons := asked{"alpha", "owner.register", "a", "k", "1"}
	m.Note(Stamp{Sequence: 5, Time: scalar.Hour}, persons.command(false).Recorded())
	corporates, another := persons, persons
	corporates.route, another.content = "b", "2"
	for name, tt := range map[string]struct {
		asked asked
		want  int64
	}{"the same": {persons, 5}, "another body": {another, -1}, "another route": {corporates, -1}} {
		if got, _ := said(&m, 2*scalar.Hour, 6, tt.asked.command(true)); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	if got, _ := said(&m, 25*scalar.Hour, 7, corporates.command(true)); got != 7 {
		t.Errorf("a day later: %d", got)
	}
}

// TestADamagedMemoryIsReadToTheDamage reads a memory that claims to have many keys, the first of which is damaged.
func TestADamagedMemoryIsReadToTheDamage(t *testing.T) {
	const keys = 1 << 10
	saved := binary.AppendUvarint([]byte{0, 0}, keys)
	saved = append(saved, 9) // the number of a word that does not exist
	saved = append(saved, make([]byte, 8*keys)...)
	var m Memory
	if err := pack.Read(saved, m.visit); !errors.Is(err, pack.ErrForm) || len(m.queue) > 1 {
		t.Errorf("%d keys were read: %v", len(m.queue), err)
	}
}
