package web

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// operationKey identifies an operation by its route.
type operationKey struct{ method, route string }

// operation executes the calls of a route.
type operation struct {
	auth       *Auth
	scopes     []string
	parameters []string // names of the route's parameters
	answer     Operation
}

// RegisterOperations registers the operations of the routes for calls inside the process. All other calls are executed
// as HTTP requests.
func (s *Server) RegisterOperations(auth *Auth, routes []Route) {
	for _, r := range routes {
		if r.Operation != nil {
			s.operations[operationKey{r.Method, r.Path}] = &operation{auth, r.Scopes, parameters(r.Path), r.Operation}
		}
	}
}

// parameters returns the names of a route's parameters.
func parameters(route string) (names []string) {
	for part := range strings.SplitSeq(route, "/") {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Do executes a call and returns the reply.
func (s *Server) Do(ctx context.Context, c *Call) Reply {
	o := s.operations[operationKey{c.Method, c.Route}]
	if o == nil {
		return c.Over(ctx, s.Echo)
	}
	in := s.calls.Get().(*inProcess)
	in.begin(ctx, c, o)
	if s.options.Tracer != nil {
		in.traced = s.options.Tracer.StartRequest(ctx, trace.Sender{}, NewID())
		in.ctx = in.traced.Context
	}
	s.operate(in)
	reply := in.reply
	in.end()
	s.calls.Put(in)
	return reply
}

// operate executes a call with an operation. It counts and logs the call like a request.
func (s *Server) operate(in *inProcess) {
	start := time.Now()
	s.metrics.active.Inc()
	defer s.metrics.active.Dec()
	a := Request{&in.requestScope, in}
	err := s.answerInside(in, a)
	if err != nil {
		in.reply.Status, in.reply.Body = s.problemBody(a, err)
	}
	s.note(a, done{err: err, status: in.reply.Status, bytes: int64(len(in.reply.Body)), took: time.Since(start)})
}

// answerInside is the counterpart of answer for calls.
func (s *Server) answerInside(in *inProcess, a Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(a, p)
		}
	}()
	if slices.Contains(in.call.Params, "") {
		return echo.ErrNotFound
	}
	p, err := in.operation.auth.admit(a, in.call.Token)
	if err == nil {
		err = p.hasOneOf(in.operation.scopes)
	}
	if err != nil {
		return err
	}
	status, answer, err := in.operation.answer(a)
	if err != nil {
		return err
	}
	in.reply.Status = status
	in.reply.Body, err = in.written(answer)
	return err
}

// problemBody returns the status and body for an error and logs a server error.
func (s *Server) problemBody(a Request, err error) (status int, body []byte) {
	p := a.problem(err)
	if p.failed() {
		s.options.Logger.ErrorContext(a.Context(), "request failed", "request_id", p.RequestID, "error", err)
	}
	if p.Status == statusClosed {
		return p.Status, nil
	}
	return p.Status, p.text()
}

// inProcess is a call that is executed by an operation. It is reused for later calls.
type inProcess struct {
	requestScope
	ctx       context.Context
	call      *Call
	operation *operation
	reply     Reply
	key       [1]string
}

func (in *inProcess) begin(ctx context.Context, c *Call, o *operation) {
	in.ctx, in.call, in.operation, in.key[0] = ctx, c, o, c.Key
	id, spare := newIDs()
	in.id, in.spare = id.String(), spare
	in.address, in.session = c.Address, c.Session
}

// end clears the call and keeps its buffer.
func (in *inProcess) end() { *in = inProcess{requestScope: requestScope{answer: roomOf(in.answer)}} }

// written returns the encoded response.
func (in *inProcess) written(answer Appender) ([]byte, error) {
	b, err := answer.AppendJSON(in.answer[:0])
	if err != nil {
		return nil, encoding(err)
	}
	in.answer = b
	return bytes.Clone(b), nil
}

// context implements transport.
func (in *inProcess) context() context.Context { return in.ctx }

// route implements transport.
func (in *inProcess) route() (method, path string, parameters []string) {
	return in.call.Method, in.call.Route, in.operation.parameters
}

// parameter implements transport.
func (in *inProcess) parameter(name string) string {
	return in.call.Params[slices.Index(in.operation.parameters, name)]
}

// target implements transport.
func (in *inProcess) target() string { return in.call.Path() }

// query implements transport.
func (in *inProcess) query() string { return in.call.Query.Encode() }

// keys implements transport.
func (in *inProcess) keys() []string {
	if in.call.Keyed {
		return in.key[:]
	}
	return nil
}

// content implements transport.
func (in *inProcess) content() ([]byte, error) {
	if len(in.call.Body) > MaxBody {
		return nil, tooLarge()
	}
	return in.call.Body, nil
}

// noContent implements transport.
func (in *inProcess) noContent() error {
	if in.call.Body == nil {
		return nil
	}
	return BodyForm(in.call.Body, nil).Done()
}

// peer implements transport.
func (in *inProcess) peer() string { return "" }

// header implements transport.
func (in *inProcess) header() http.Header { return nil }

// answerAt implements transport.
func (in *inProcess) answerAt(p record.LogPosition) { in.reply.Position = p.String() }
