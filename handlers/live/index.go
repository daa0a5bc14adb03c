package live

import "github.com/perpetua-exchange/perpetua/streams/record"

// subscription is a session's subscription to a topic.
type subscription struct {
	session   *session
	channel   *channel
	topic     string // as the client named it
	key       key
	slot      int  // index in the readers of key
	positions bool // adds the position to each message
	// catching is set while missed messages are still read from the log.
	catching *catchUp
	// shown contains the customers with a sent snapshot while there are more to send, and next is the index of the
	// next one. shown is nil when all have been sent.
	shown map[string]struct{}
	next  int
}

// key is the address of a message: a symbol, a customer, a broker, or everyone who may read all brokers.
type key struct {
	channel *channel
	scope   scope
	name    string
}

type scope uint8

const (
	ofVenue scope = iota
	ofBroker
	ofCustomer
	ofSymbol
)

// index holds the subscriptions to each key. The hub's lock guards it.
type index struct {
	readers map[key][]*subscription
	count   map[*channel]int
}

func newIndex() *index {
	return &index{readers: make(map[key][]*subscription), count: make(map[*channel]int)}
}

func (x *index) add(s *subscription) {
	s.slot = len(x.readers[s.key])
	x.readers[s.key] = append(x.readers[s.key], s)
	x.count[s.channel]++
}

func (x *index) remove(s *subscription) {
	readers := x.readers[s.key]
	last := len(readers) - 1
	readers[s.slot] = readers[last]
	readers[s.slot].slot = s.slot
	readers[last] = nil
	x.count[s.channel]--
	if last == 0 {
		delete(x.readers, s.key)
		return
	}
	x.readers[s.key] = readers[:last]
}

// of returns the subscriptions that get a draft, in up to three lists.
func (x *index) of(d *draft) (lists [3][]*subscription, any bool) {
	if !d.channel.private {
		lists[0] = x.readers[key{d.channel, ofSymbol, d.symbol}]
	} else {
		lists[0] = x.readers[key{channel: d.channel}]
		lists[1] = x.readers[key{d.channel, ofBroker, d.broker}]
		lists[2] = x.readers[key{d.channel, ofCustomer, d.customer}]
	}
	return lists, len(lists[0])+len(lists[1])+len(lists[2]) > 0
}

// matches reports whether a subscription with the key gets the draft.
func (k key) matches(d *draft) bool {
	if k.channel != d.channel {
		return false
	}
	switch k.scope {
	case ofVenue:
		return true
	case ofBroker:
		return k.name == d.broker
	case ofCustomer:
		return k.name == d.customer
	}
	return k.name == d.symbol
}

// message is an encoded message with its log position. Each form, without and with the position, is created at most
// once.
type message struct {
	plain    []byte
	position string
	frames   [2]*frame // without and with the position
}

// frame returns the message's frame, without or with the position.
func (m *message) frame(withPosition bool) *frame {
	if !withPosition {
		if m.frames[0] == nil {
			m.frames[0] = textFrame(m.plain)
		}
		return m.frames[0]
	}
	if m.frames[1] == nil {
		body := m.plain[:len(m.plain)-1]
		placed := make([]byte, 0, len(body)+len(m.position)+16)
		placed = append(placed, body...)
		placed = append(placed, `,"position":"`...) // a position needs no escaping
		placed = append(placed, m.position...)
		m.frames[1] = textFrame(append(placed, `"}`...))
	}
	return m.frames[1]
}

// logPosition returns the position of a record as clients see it.
func (h *Hub) logPosition(sequence int64) record.LogPosition {
	return record.LogPosition{Journal: h.journal, Partition: h.partition, Sequence: sequence}
}
