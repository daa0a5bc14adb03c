package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Order entry over a WebSocket uses the REST operations. The members of a request's data that a REST route has in its
// path, query, and headers become those of a call. The rest of data is the body, in the bytes that the client sent, and
// the operation alone parses it. The operation's response is sent back. The rules are therefore the same.
//
// The requests of a session begin in order. Each begins when the previous one has been queued at the journal's owner
// or has been answered, so a cancellation is never decided before an order that was sent earlier. Responses are sent
// when their records are acknowledged and may arrive in another order.

// entryShape specifies how an operation is converted to a REST request.
type entryShape struct {
	method string
	route  string
	order  bool   // data identifies an order, for the route's parameter
	body   bool   // the remaining members of data are the body
	query  string // member of data that is a query parameter, or ""
}

// These are the REST routes of order entry.
const (
	routeOrders      = "/v1/customers/:customer_code/orders"
	routeOrder       = routeOrders + "/:order_code"
	routeByReference = routeOrders + "/by-reference/:reference_id"
	routeBatch       = routeOrders + "/batch"
)

// These are the operations of order entry.
const (
	opPlace       = "order.place"
	opAmend       = "order.amend"
	opAmendBatch  = "order.amend_batch"
	opCancel      = "order.cancel"
	opPlaceBatch  = "order.place_batch"
	opCancelBatch = "order.cancel_batch"
	opCancelAll   = "order.cancel_all"
)

var entryShapes = map[string]entryShape{
	opPlace:       {method: http.MethodPost, route: routeOrders, body: true},
	opAmend:       {method: http.MethodPatch, route: routeOrder, order: true, body: true},
	opCancel:      {method: http.MethodDelete, route: routeOrder, order: true},
	opPlaceBatch:  {method: http.MethodPost, route: routeBatch, body: true},
	opAmendBatch:  {method: http.MethodPatch, route: routeBatch, body: true},
	opCancelBatch: {method: http.MethodDelete, route: routeBatch, body: true},
	opCancelAll:   {method: http.MethodDelete, route: routeOrders, query: "symbol"},
}

// entry is a parsed order entry request.
type entry struct {
	op     string
	id     jsontext.Value
	call   rest.Call
	params [2]string // parameters of the call: the customer and the order
	room   [16]member
}

// parseEntry parses an order entry request. It returns nil for any other message, even an invalid one. If it returns
// an error, the entry contains the ID, provided that the ID is valid. Without an error, the entry owns raw: the members
// of data that are not part of the body are overwritten.
func parseEntry(raw []byte) (*entry, error) {
	e := &entry{}
	var data jsontext.Value
	var fault error // the first one
	cut := cutter{raw: raw, enter: "data", members: e.room[:0]}
	defer cut.done()
	for cut.next() {
		switch string(cut.name) {
		case "op":
			e.op = cut.text()
		case "id":
			e.id = cut.value
		case "data":
			data = cut.value
		default:
			if fault == nil {
				fault = fmt.Errorf("order entry takes no field %.64q", cut.name)
			}
		}
		if cut.again && fault == nil {
			fault = errors.New("a field is given twice")
		}
	}
	shape, known := entryShapes[e.op]
	if !known || cut.err != nil { // the parser of other requests reports the error
		return nil, nil
	}
	if k := e.id.Kind(); k != '"' && k != '0' || len(e.id) > maxID {
		e.id = nil
		return e, fmt.Errorf("%s needs an id, a string or a number of at most %d bytes", e.op, maxID)
	}
	if fault != nil {
		return e, fault
	}
	if data.Kind() != '{' {
		return e, errors.New("data must be an object")
	}
	if err := e.read(shape, raw, cut.members); err != nil || !shape.body {
		return e, err
	}
	blank(raw, cut.members)
	e.call.Body = data
	return e, nil
}

// part is the part of a REST request that a member of data stands for. Each but inBody is a bit.
type part int

const (
	customerCode part = 1 << iota
	idempotencyKey
	orderCode
	referenceID
	queryParameter
	inBody part = 0
)

// part returns the part that a member of data stands for by its name.
func (s entryShape) part(name []byte) part {
	switch {
	case string(name) == "customer_code":
		return customerCode
	case string(name) == "idempotency_key":
		return idempotencyKey
	case s.order && string(name) == "order_code":
		return orderCode
	case s.order && string(name) == "reference_id":
		return referenceID
	case s.query != "" && string(name) == s.query:
		return queryParameter
	}
	return inBody
}

// read takes the members of data that the REST route has in its path, query, and headers. The others are the body. A null
// member is equivalent to an absent one, as in the body.
func (e *entry) read(shape entryShape, raw []byte, data []member) error {
	e.call.Method, e.call.Route = shape.method, shape.route
	e.call.Params = e.params[:1]
	var seen part
	for i := range data {
		m := &data[i]
		name, value := m.in(raw)
		p := shape.part(name)
		if m.body = p == inBody; m.body {
			continue
		}
		if seen&p != 0 {
			return fmt.Errorf("data.%s is given twice", name)
		}
		if seen |= p; value.Kind() == 'n' {
			continue
		}
		given := text(value)
		if given == "" && p != idempotencyKey {
			return fmt.Errorf("data.%s must be a string that is not empty", name)
		}
		if err := e.put(shape, p, given); err != nil {
			return err
		}
	}
	switch {
	case e.params[0] == "":
		return errors.New("data.customer_code is required")
	case shape.order && e.params[1] == "":
		return errors.New("one of data.order_code and data.reference_id is required")
	}
	if !shape.body {
		if i := slices.IndexFunc(data, func(m member) bool { return m.body }); i >= 0 {
			name, _ := data[i].in(raw)
			return fmt.Errorf("%s takes no field %.64q", e.op, "data."+string(name))
		}
	}
	if shape.order {
		e.call.Params = e.params[:2]
	}
	return nil
}

// put sets a part of the call that is not in its body.
func (e *entry) put(shape entryShape, p part, value string) error {
	switch p {
	case customerCode:
		e.params[0] = value
	case idempotencyKey:
		e.call.Key, e.call.Keyed = value, true
	case orderCode, referenceID:
		if e.params[1] != "" {
			return errors.New("one of data.order_code and data.reference_id names the order, not both")
		}
		e.params[1] = value
		if p == referenceID {
			e.call.Route = routeByReference
		}
	case queryParameter:
		e.call.Query = url.Values{shape.query: {value}}
	}
	return nil
}

// member is a member of data. It consists of offsets in the message.
type member struct {
	from, nameEnd, value, to int32
	body                     bool // it is part of the body
}

// in returns the unescaped name and the value as sent.
func (m *member) in(raw []byte) (name []byte, value jsontext.Value) {
	quoted := raw[m.from:m.nameEnd]
	name, err := unquoted(quoted)
	if err != nil {
		name = quoted // an invalid name, which matches no member
	}
	return name, raw[m.value:m.to]
}

// blank overwrites the members that are not part of the body with spaces, and their commas. The operation then reads the
// body that a client would send over REST: it finds the same errors and computes the same fingerprint.
func blank(raw []byte, data []member) {
	fill := func(from, to int32) {
		for i := from; i < to; i++ {
			raw[i] = ' '
		}
	}
	last := -1 // the last member of the body
	for i := range data {
		if data[i].body {
			last = i
		}
	}
	for i := range data {
		m := &data[i]
		if !m.body {
			fill(m.from, m.to)
		}
		if i+1 < len(data) && (!m.body || i == last) { // only white space and a comma follow
			fill(m.to, data[i+1].from)
		}
	}
}

// requestMembers are the members of an order entry request.
var requestMembers = [...]string{"op", "id", "data"}

// cutter splits an object into its members and parses the values only far enough to find their ends. Its time is
// proportional to the size of the object, because it reads messages before they count towards a limit.
type cutter struct {
	raw     []byte
	enter   string   // name of a member that is split too if it is an object
	members []member // of that object
	dec     *jsontext.Decoder

	name   []byte
	quoted []byte         // the name as sent
	value  jsontext.Value // the value as sent
	again  bool           // the name is a duplicate of one of requestMembers
	seen   [len(requestMembers)]bool
	err    error
}

// decoders is a pool, because creating a decoder costs more than splitting a request.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// done releases the decoder. The results stay valid, because they are slices of raw.
func (c *cutter) done() {
	if c.dec != nil {
		decoders.Put(c.dec)
	}
}

// next proceeds to the next member. It returns false at the end, or if the input is not an object, which sets err.
func (c *cutter) next() bool {
	if c.dec == nil {
		c.dec = decoders.Get().(*jsontext.Decoder)
		c.dec.Reset(bytes.NewBuffer(c.raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if open, err := c.dec.ReadToken(); err != nil || open.Kind() != '{' {
			c.err = errNoObject
			return false
		}
	}
	if c.dec.PeekKind() == '}' {
		_, c.err = c.dec.ReadToken()
		if _, err := c.dec.ReadToken(); c.err == nil && !errors.Is(err, io.EOF) {
			c.err = errNoObject // there is data after the object
		}
		return false
	}
	if c.quoted, c.err = c.piece(); c.err != nil {
		return false
	}
	var err error
	if c.name, err = unquoted(c.quoted); err != nil {
		c.name = c.quoted // an invalid name, which matches no member
	}
	c.again = false
	for i, name := range requestMembers {
		if string(c.name) == name {
			c.again, c.seen[i] = c.seen[i], true
		}
	}
	if c.enter != "" && string(c.name) == c.enter && c.dec.PeekKind() == '{' {
		c.err = c.split()
	} else {
		c.value, c.err = c.piece()
	}
	return c.err == nil
}

// split reads an object and its members.
func (c *cutter) split() error {
	if _, err := c.dec.ReadToken(); err != nil {
		return err
	}
	from := c.offset() - 1
	for c.members = c.members[:0]; c.dec.PeekKind() != '}'; {
		name, err := c.dec.ReadValue()
		if err != nil {
			return err
		}
		m := member{nameEnd: c.offset()}
		m.from = m.nameEnd - int32(len(name))
		value, err := c.dec.ReadValue()
		if err != nil {
			return err
		}
		m.to = c.offset()
		m.value = m.to - int32(len(value))
		c.members = append(c.members, m)
	}
	_, err := c.dec.ReadToken()
	c.value = c.raw[from:c.offset():c.offset()]
	return err
}

// offset returns the position in raw. A message is much shorter than 2 GB (Limits.MessageBytes).
func (c *cutter) offset() int32 { return int32(c.dec.InputOffset()) }

var errNoObject = errors.New("not an object")

// piece reads a value and returns it as a slice of raw.
func (c *cutter) piece() (jsontext.Value, error) {
	v, err := c.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := c.dec.InputOffset()
	return c.raw[end-int64(len(v)) : end : end], nil
}

// text returns the value if it is a string, else "".
func (c *cutter) text() string { return text(c.value) }

func text(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	s, err := unquoted(v)
	if err != nil {
		return ""
	}
	return string(s)
}

// unquoted returns the content of a JSON string, as a slice of quoted if it has no escapes.
func unquoted(quoted []byte) ([]byte, error) {
	for _, c := range quoted {
		if c == '\\' || c >= utf8.RuneSelf {
			return jsontext.AppendUnquote(nil, quoted)
		}
	}
	return quoted[1 : len(quoted)-1], nil
}

// beginEntry starts an order entry request. It is called by the goroutine that reads the session's requests.
func (h *Hub) beginEntry(s *session, e *entry, err error) {
	h.metrics.requests.WithLabelValues(e.op).Inc()
	token := s.bearer()
	switch {
	case h.readOnly != nil && e.id != nil: // before anything else is checked, as REST does
		if h.allowRequest(s, func() jsontext.Value { return e.id }) {
			reply := e.call.Refused(h.readOnly)
			s.send(resultMessage(e.id, &reply))
		}
		return
	case err != nil:
		if h.allowRequest(s, func() jsontext.Value { return e.id }) { // invalid messages count towards the rate limit
			h.reject(s, e.id, InvalidMessage, err.Error())
		}
		return
	case h.rest == nil:
		h.reject(s, e.id, InvalidMessage, "orders are not entered here")
		return
	case token == "":
		if h.allowRequest(s, func() jsontext.Value { return e.id }) {
			h.reject(s, e.id, AuthenticationRequired, "order entry needs an authenticated connection")
		}
		return
	case s.inFlightOrders.Add(1) > int64(h.limits.Entries):
		s.inFlightOrders.Add(-1)
		h.reject(s, e.id, RateLimited, "more than "+strconv.Itoa(h.limits.Entries)+" requests for order entry are under way")
		return
	}
	if !h.shutdown.begin() {
		s.inFlightOrders.Add(-1)
		reply := e.call.Refused(problem.Unavailable(submit.CodeNotAccepted, "The server is stopping.", time.Second))
		s.send(resultMessage(e.id, &reply))
		return
	}
	e.call.Token, e.call.Address, e.call.Session = token, s.address, s.tradingSession()
	turn, done := s.reader.turn, make(chan struct{})
	s.reader.turn = done
	h.serving.Go(func() { h.answer(s, e, turn, done) }) // Add is safe: the counter includes the session's handler
}

// answer executes a request when its turn has come. It ends the turn as soon as a later request cannot overtake this
// one.
func (h *Hub) answer(s *session, e *entry, turn <-chan struct{}, done chan struct{}) {
	defer h.shutdown.end()
	end := sync.OnceFunc(func() { close(done) })
	defer end()
	if turn != nil {
		<-turn
	}
	reply := h.rest.Do(submit.OnQueued(s.ctx, end), &e.call)
	s.inFlightOrders.Add(-1) // before the result: a client that has it may send another request
	s.send(resultMessage(e.id, &reply))
}

// resultMessage returns the response to order entry, which contains the response of the REST route.
func resultMessage(id jsontext.Value, r *rest.Reply) []byte {
	b := make([]byte, 0, len(r.Body)+len(id)+96)
	b = append(append(b, `{"op":"result","id":`...), id...)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(r.Status), 10)
	b = append(b, `,"position":`...)
	if r.Position == "" {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), r.Position...), '"') // a position needs no escaping
	}
	b = append(b, `,"data":`...)
	if len(r.Body) == 0 {
		b = append(b, "null"...)
	}
	return append(append(b, r.Body...), '}')
}

// bearer returns the session's token, or "".
func (s *session) bearer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.who == nil {
		return ""
	}
	return s.auth.token
}
