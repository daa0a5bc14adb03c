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

	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Order entry over a socket is order entry over REST: a request is cut into the parameters, the query, the key and the body
// of the REST route, which nobody reads here, and what the route's operation answers is sent back. So there is one set of rules.
//
// The requests of a session are begun in their order, each when the one before has its place in the queue of the journal's
// owner, or its answer: a cancel is never decided before the order that was sent before it. They are answered as their
// records are acknowledged, so answers may overtake each other.

// entryShape says how an operation becomes a REST request.
type entryShape struct {
	method string
	route  string
	order  bool   // data names an order, which the route has a parameter for
	body   bool   // what is left of data is the body
	query  string // a member of data that is a parameter, if there is one
}

// The routes of order entry.
const (
	routeOrders      = "/v1/customers/:customer_code/orders"
	routeOrder       = routeOrders + "/:order_code"
	routeByReference = routeOrders + "/by-reference/:reference_id"
	routeBatch       = routeOrders + "/batch"
)

// The operations of order entry.
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

// entry is a request for order entry as it was sent.
type entry struct {
	op     string
	id     jsontext.Value
	call   web.Call
	params [2]string // of the call: the customer, and what names an order
}

// parseEntry reads a request for order entry. It returns nil for every other request, whether it can be read or not. With
// an error it returns the entry with the id, if there is a good one.
func parseEntry(raw []byte) (*entry, error) {
	e := &entry{}
	var data jsontext.Value
	var faults []error
	cut := cutter{raw: raw}
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
			faults = append(faults, fmt.Errorf("order entry takes no field %.64q", cut.name))
		}
		if cut.again {
			faults = append(faults, errors.New("a field is given twice"))
		}
	}
	shape, known := entryShapes[e.op]
	if !known || cut.err != nil { // what is wrong with it, the reader of all other requests says
		return nil, nil
	}
	if k := e.id.Kind(); k != '"' && k != '0' || len(e.id) > maxID {
		e.id = nil
		return e, fmt.Errorf("%s needs an id, a string or a number of at most %d bytes", e.op, maxID)
	}
	if len(faults) > 0 {
		return e, faults[0]
	}
	return e, e.read(shape, data)
}

// read cuts data up.
func (e *entry) read(shape entryShape, data jsontext.Value) error {
	if data.Kind() != '{' {
		return errors.New("data must be an object")
	}
	e.call.Method, e.call.Route = shape.method, shape.route
	e.call.Params = e.params[:1]
	customer, order, named := &e.params[0], &e.params[1], false
	// What the REST route has in its path, query and headers is taken out; the rest is its body, each value as it came: what
	// is wrong with it, the route says, in the same words.
	body := append(make([]byte, 0, len(data)), '{')
	cut := cutter{raw: data}
	defer cut.done()
	for cut.next() {
		var to *string
		switch name := string(cut.name); {
		case name == "customer_code":
			to = customer
		case name == "idempotency_key":
			to, e.call.Keyed = &e.call.Key, true
		case shape.order && (name == "order_code" || name == "reference_id"):
			if named && !cut.again {
				return errors.New("one of data.order_code and data.reference_id names the order, not both")
			}
			to, named = order, true
			if name == "reference_id" {
				e.call.Route = routeByReference
			}
		case shape.query != "" && name == shape.query:
			e.call.Query = url.Values{shape.query: {""}}
			to = &e.call.Query[shape.query][0]
		default:
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(append(append(body, cut.quoted...), ':'), cut.value...)
			continue
		}
		if cut.again {
			return fmt.Errorf("data.%s is given twice", cut.name)
		}
		if *to = cut.text(); *to == "" && string(cut.name) != "idempotency_key" {
			return fmt.Errorf("data.%s must be a string that is not empty", cut.name)
		}
	}
	switch {
	case *customer == "":
		return errors.New("data.customer_code is required")
	case shape.order && !named:
		return errors.New("one of data.order_code and data.reference_id is required")
	case !shape.body && len(body) > 1:
		return fmt.Errorf("%s takes nothing else in data: %.64q", e.op, body)
	}
	if shape.order {
		e.call.Params = e.params[:2]
	}
	if shape.body {
		e.call.Body = append(body, '}')
	}
	return nil
}

// cutter cuts an object into its members, without reading the values any further than to their ends.
type cutter struct {
	raw []byte
	dec *jsontext.Decoder

	name   []byte
	quoted []byte         // the name as it was sent
	value  jsontext.Value // as it was sent
	again  bool           // the name has been there before
	names  [][]byte
	room   [8][]byte // for names
	err    error
}

// decoders are used again: to make one costs more than to cut an order entry up.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// done gives the decoder back. What was cut stays, since it lies in raw.
func (c *cutter) done() {
	if c.dec != nil {
		decoders.Put(c.dec)
	}
}

// next goes on to the next member. It returns false at the end, or when what is there is no object: err says which.
func (c *cutter) next() bool {
	if c.dec == nil {
		c.dec = decoders.Get().(*jsontext.Decoder)
		c.dec.Reset(bytes.NewBuffer(c.raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		c.names = c.room[:0]
		if open, err := c.dec.ReadToken(); err != nil || open.Kind() != '{' {
			c.err = errNoObject
			return false
		}
	}
	if c.dec.PeekKind() == '}' {
		_, c.err = c.dec.ReadToken()
		if _, err := c.dec.ReadToken(); c.err == nil && !errors.Is(err, io.EOF) {
			c.err = errNoObject // there is something behind it
		}
		return false
	}
	if c.quoted, c.err = c.piece(); c.err != nil {
		return false
	}
	var err error
	if c.name, err = unquoted(c.quoted); err != nil {
		c.name = c.quoted // of no meaning
	}
	c.again = slices.ContainsFunc(c.names, func(other []byte) bool { return bytes.Equal(other, c.name) })
	c.names = append(c.names, c.name)
	c.value, c.err = c.piece()
	return c.err == nil
}

var errNoObject = errors.New("not an object")

// piece reads a value, and returns it as it lies in raw, where it stays.
func (c *cutter) piece() (jsontext.Value, error) {
	v, err := c.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := c.dec.InputOffset()
	return c.raw[end-int64(len(v)) : end : end], nil
}

// text returns the value if it is a string, "" otherwise.
func (c *cutter) text() string {
	if c.value.Kind() != '"' {
		return ""
	}
	s, err := unquoted(c.value)
	if err != nil {
		return ""
	}
	return string(s)
}

// unquoted returns what a JSON string says: a part of it where that is plain.
func unquoted(quoted []byte) ([]byte, error) {
	for _, c := range quoted {
		if c == '\\' || c >= utf8.RuneSelf {
			return jsontext.AppendUnquote(nil, quoted)
		}
	}
	return quoted[1 : len(quoted)-1], nil
}

// beginEntry begins a request for order entry. It is called by the goroutine that reads the session's requests.
func (h *Hub) beginEntry(s *session, e *entry, err error) {
	h.metrics.requests.WithLabelValues(e.op).Inc()
	token := s.bearer()
	switch {
	case err != nil:
		if h.mayAsk(s, func() jsontext.Value { return e.id }) { // as any other request that is not as described
			h.reject(s, e.id, InvalidMessage, err.Error())
		}
		return
	case h.rest == nil:
		h.reject(s, e.id, InvalidMessage, "orders are not entered here")
		return
	case token == "":
		if h.mayAsk(s, func() jsontext.Value { return e.id }) {
			h.reject(s, e.id, AuthenticationRequired, "order entry needs an authenticated connection")
		}
		return
	case s.entering.Add(1) > int64(h.limits.Entries):
		s.entering.Add(-1)
		h.reject(s, e.id, RateLimited, "more than "+strconv.Itoa(h.limits.Entries)+" requests for order entry are under way")
		return
	}
	if !h.parting.begin() {
		s.entering.Add(-1)
		reply := e.call.Refused(web.Unavailable(submit.CodeNotAccepted, "The server is stopping.", time.Second))
		s.send(resultMessage(e.id, &reply))
		return
	}
	e.call.Token, e.call.Address, e.call.Session = token, s.address, s.tradingSession()
	turn, done := s.turn, make(chan struct{})
	s.turn = done
	h.serving.Go(func() { h.answer(s, e, turn, done) }) // the session's handler is counted, so the count is not zero
}

// answer has a request answered when its turn has come, and ends the turn as soon as the request cannot be overtaken.
func (h *Hub) answer(s *session, e *entry, turn <-chan struct{}, done chan struct{}) {
	defer h.parting.end()
	defer s.entering.Add(-1)
	end := sync.OnceFunc(func() { close(done) })
	defer end()
	if turn != nil {
		<-turn
	}
	reply := h.rest.Do(submit.OnQueued(s.ctx, end), &e.call)
	s.send(resultMessage(e.id, &reply))
}

// resultMessage is the answer to order entry: that of the REST route.
func resultMessage(id jsontext.Value, r *web.Reply) []byte {
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

// bearer returns the token that the session acts with, "" for none.
func (s *session) bearer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.who == nil {
		return ""
	}
	return s.token
}
