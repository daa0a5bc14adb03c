package rest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// operationKey identifies an operation by its route.
type operationKey struct{ method, route string }

// executor executes the calls of a route.
type executor struct {
	auth       *Auth
	scopes     []string
	parameters []string // names of the route's parameters
	answer     operation.Operation
}

// RegisterOperations registers the operations of the routes for calls inside the process. All other calls are executed
// as HTTP requests.
func (s *Server) RegisterOperations(auth *Auth, routes []Route) {
	for _, r := range routes {
		if r.Operation != nil {
			s.operations[operationKey{r.Method, r.Path}] = &executor{auth, r.Scopes, parameters(r.Path), r.Operation}
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
		in.scope.Traced = s.options.Tracer.StartRequest(ctx, trace.Sender{}, operation.NewID())
		in.ctx = in.scope.Traced.Context
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
	a := operation.NewRequest(&in.scope, in)
	err := s.answerInside(in, a)
	if err != nil {
		in.reply.Status, in.reply.Body = s.problemBody(a, err)
	}
	s.note(a, done{err: err, status: in.reply.Status, bytes: int64(len(in.reply.Body)), took: time.Since(start)})
}

// answerInside is the counterpart of answer for calls.
func (s *Server) answerInside(in *inProcess, a operation.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(a, p)
		}
	}()
	if slices.Contains(in.call.Params, "") {
		return echo.ErrNotFound
	}
	if ro := s.options.ReadOnly; ro != nil {
		if refused := ro.refused(in.call.Method, in.call.Route); refused != nil {
			return refused
		}
	}
	auth := in.operation.auth
	verified, err := auth.verify(a, in.call.Token)
	if err != nil {
		return err
	}
	p, err := auth.admit(a, verified)
	if err == nil {
		err = p.Require(in.operation.scopes)
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
func (s *Server) problemBody(a operation.Request, err error) (status int, body []byte) {
	p := a.Problem(err)
	if p.Failed() {
		s.options.Logger.ErrorContext(a.Context(), "request failed", "request_id", p.RequestID, "error", err)
	}
	if p.Status == problem.StatusClosed {
		return p.Status, nil
	}
	return p.Status, p.JSON()
}

// inProcess is a call that is executed by an operation. It is reused for later calls.
type inProcess struct {
	scope     operation.Scope
	answer    []byte // reusable buffer for the response
	ctx       context.Context
	call      *Call
	operation *executor
	reply     Reply
	key       [1]string
}

func (in *inProcess) begin(ctx context.Context, c *Call, o *executor) {
	in.ctx, in.call, in.operation, in.key[0] = ctx, c, o, c.Key
	id, spare := operation.NewIDs()
	in.scope = operation.Scope{ID: id.String(), Spare: spare, Address: c.Address, Session: c.Session}
}

// end clears the call and keeps its buffer.
func (in *inProcess) end() { *in = inProcess{answer: roomOf(in.answer)} }

// written returns the encoded response.
func (in *inProcess) written(answer operation.Appender) ([]byte, error) {
	b, err := answer.AppendJSON(in.answer[:0])
	if err != nil {
		return nil, encoding(err)
	}
	in.answer = b
	return bytes.Clone(b), nil
}

// Context implements operation.Transport.
func (in *inProcess) Context() context.Context { return in.ctx }

// Route implements operation.Transport.
func (in *inProcess) Route() (method, path string, parameters []string) {
	return in.call.Method, in.call.Route, in.operation.parameters
}

// Parameter implements operation.Transport.
func (in *inProcess) Parameter(name string) string {
	return in.call.Params[slices.Index(in.operation.parameters, name)]
}

// Target implements operation.Transport.
func (in *inProcess) Target() string { return in.call.Path() }

// Query implements operation.Transport.
func (in *inProcess) Query() string { return in.call.Query.Encode() }

// Keys implements operation.Transport.
func (in *inProcess) Keys() []string {
	if in.call.Keyed {
		return in.key[:]
	}
	return nil
}

// Content implements operation.Transport.
func (in *inProcess) Content() ([]byte, error) {
	if len(in.call.Body) > input.MaxBody {
		return nil, problem.TooLarge()
	}
	return in.call.Body, nil
}

// Absent implements operation.Transport.
func (in *inProcess) Absent() error {
	if in.call.Body == nil {
		return nil
	}
	return input.Body(in.call.Body, nil).Done()
}

// Peer implements operation.Transport.
func (in *inProcess) Peer() string { return "" }

// Header implements operation.Transport.
func (in *inProcess) Header() http.Header { return nil }

// AnswerAt implements operation.Transport.
func (in *inProcess) AnswerAt(p record.LogPosition) { in.reply.Position = p.String() }

// AnswerAtAll implements operation.Transport.
func (in *inProcess) AnswerAtAll(all []record.LogPosition) {
	in.reply.Position = strings.Join(texts(all), ", ")
}

// Least implements operation.Transport. Operations do not wait for a position.
func (in *inProcess) Least() []string { return nil }
