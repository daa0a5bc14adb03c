// Package trace follows one command from its request, through the decision and the record, to the rows and the sockets, as
// OpenTelemetry spans.
//
// The log holds nothing for tracing. A record's key, headers and timestamp are functions of its value, and a trace context
// is not part of the value. So the ids are derived from the command's id, which every reader has. It is a UUID of version 7,
// which has the size of a trace id and ends in 62 random bits:
//
//	trace id        = the command's id, all 16 bytes
//	the record's span = its last 8 bytes
//
// So every reader of a record, at any time and in any language, can compute its trace and its parent span. A request without
// a trace context takes the id of its future command as its trace id. A request with a traceparent stays in the trace of its
// sender, and that trace and the command's are linked to each other.
//
// Sampling also follows from the command's id: from its last 7 bytes, the random ones of W3C Trace Context 2, as in
// OpenTelemetry's consistent probability sampling. So all processes with the same ratio agree without communication. The
// sender of a request can only opt out: the interface is public, and a sender's flag must not decide how much is recorded.
//
// A nil *Tracer turns tracing off. It then costs only the comparison with nil.
package trace

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// late is how old a record may be for its readers to tell of it. Those that catch up, or rebuild, do not tell of the
// past.
const late = time.Minute

// maxLinks bounds how many records of one batch are told of.
const maxLinks = 64

// Tracer makes the spans of a process. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	rejected uint64 // of the 2^56 values of an id's random part, the lowest ones are not traced
	now      func() time.Time
}

// randomness is how many values the random part of an id has.
const randomness = 1 << 56

// New returns a tracer that hands its spans to a processor. Of all commands it traces a ratio, from 0 to 1.
func New(ratio float64, options ...sdk.TracerProviderOption) *Tracer {
	options = append(options, sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(ids{}))
	t := &Tracer{provider: sdk.NewTracerProvider(options...), now: time.Now}
	t.tracer = t.provider.Tracer("github.com/perpetua-exchange/perpetua")
	t.rejected = uint64(math.Round((1 - min(max(ratio, 0), 1)) * randomness))
	return t
}

// Close hands over what is left.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Traces reports whether the command with an id is traced.
func (t *Tracer) Traces(id scalar.ID) bool { return t != nil && t.traces(id) }

func (t *Tracer) traces(id scalar.ID) bool {
	return binary.BigEndian.Uint64(id[8:])&(randomness-1) >= t.rejected && !id.IsZero()
}

// ofRecord returns the context of the span of the record that a command became: whose name everybody can derive.
func ofRecord(id scalar.ID) trace.SpanContext {
	var span trace.SpanID
	copy(span[:], id[8:])
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(id), SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
}

// wanted are the ids that a span is to have, in its context; zero ones are made at random.
type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

type wantedKey struct{}

// root returns a context whose next span begins the trace of a command.
func root(ctx context.Context, w wanted) context.Context {
	return context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), wantedKey{}, w)
}

// Request is the trace of a request, from its coming in to its answer.
type Request struct {
	span trace.Span // nil in a zero Request, whose End does nothing
	// Context carries the span, for Command.
	Context context.Context
	// Command is the id that the request's command is to have, so that both are one trace.
	Command scalar.ID
	// Parent is the traceparent for requests that this one causes.
	Parent string
}

// Sender is what a request says of the trace that it comes from.
type Sender struct {
	Parent, State string // its traceparent and tracestate headers, or ""
	// Peer says that another node of the venue sent it, which has decided already whether it is traced.
	Peer bool
}

// StartRequest begins the span of a request. fresh is an id for its command. The request has a span if that command is
// traced and its sender, if it is in a trace, records that; one from a peer has a span if the peer's request has one.
// It has all the rest in any case.
func (t *Tracer) StartRequest(ctx context.Context, from Sender, fresh scalar.ID) Request {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": from.Parent, "tracestate": from.State})
	given := trace.SpanContextFromContext(ctx)
	r := Request{Command: fresh, span: trace.SpanFromContext(context.Background()), Context: ctx, Parent: from.Parent}
	traced := t.traces(fresh)
	switch {
	case given.IsValid() && !given.IsSampled():
		return r
	case given.IsValid() && (traced || from.Peer):
		r.Context, r.span = t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	case given.IsValid():
		r.Context = trace.ContextWithRemoteSpanContext(ctx, given.WithTraceFlags(given.TraceFlags()&^trace.FlagsSampled))
	case traced:
		r.Context, r.span = t.tracer.Start(root(ctx, wanted{trace: trace.TraceID(fresh)}), "request", trace.WithSpanKind(trace.SpanKindServer))
	default:
		own := ofRecord(fresh)
		r.Context = trace.ContextWithRemoteSpanContext(ctx, own.WithTraceFlags(0))
	}
	out := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(r.Context, out)
	r.Parent = out["traceparent"]
	return r
}

// End ends the span of a request: its method, the route that it found, the status and the code of the answer, "" for
// none.
func (r Request) End(method, route string, status int, code string) {
	if r.span == nil || !r.span.IsRecording() {
		return
	}
	r.span.SetName(method + " " + route)
	r.span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status))
	if code != "" {
		r.span.SetAttributes(attribute.String("error.type", code))
	}
	if status >= 500 {
		r.span.SetStatus(codes.Error, code)
	}
	r.span.End()
}

// Command is the trace of a command at its owner; nil where it is not traced. It is not changed after StartCommand, but
// by End.
type Command struct {
	tracer *Tracer
	ctx    context.Context
	span   trace.Span
}

// StartCommand begins the span of a command that is submitted to its owner. ctx is its request's: where that is in
// another trace, the two are linked. A nil tracer returns a nil command.
func (t *Tracer) StartCommand(ctx context.Context, id scalar.ID, kind, journal string) *Command {
	if t == nil || !t.traces(id) {
		return nil
	}
	options := []trace.SpanStartOption{trace.WithAttributes(attribute.String("perpetua.command.type", kind),
		attribute.String("perpetua.journal", journal))}
	asked := trace.SpanFromContext(ctx)
	if from := asked.SpanContext(); from.TraceID() != trace.TraceID(id) {
		if from.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
			asked.AddLink(trace.Link{SpanContext: ofRecord(id)})
		}
		ctx = root(ctx, wanted{trace: trace.TraceID(id)})
	}
	c := &Command{tracer: t}
	c.ctx, c.span = t.tracer.Start(ctx, "submit "+kind, options...)
	return c
}

// Decided tells when a command was submitted, when its decision began and when that ended.
func (c *Command) Decided(submitted, began, ended time.Time) {
	if c == nil {
		return
	}
	_, wait := c.tracer.tracer.Start(c.ctx, "wait", trace.WithTimestamp(submitted))
	wait.End(trace.WithTimestamp(began))
	_, work := c.tracer.tracer.Start(c.ctx, "decide", trace.WithTimestamp(began))
	work.End(trace.WithTimestamp(ended))
}

// End ends the span of a command with the name of its result.
func (c *Command) End(result string) {
	if c == nil {
		return
	}
	c.span.SetAttributes(attribute.String("perpetua.result", result))
	switch result {
	case "outcome_unknown", "failed":
		c.span.SetStatus(codes.Error, result)
	}
	c.span.End()
}

// Record is what a reader or the owner knows of a record.
type Record struct {
	Command  scalar.ID
	Type     string
	Journal  string
	Sequence int64
	Time     scalar.Time
}

// RecordOf returns what a trace says of a record of a journal.
func RecordOf(journal string, e record.Entry) Record {
	return Record{Command: e.Record.Command.ID, Type: e.Record.Command.Type, Journal: journal, Sequence: e.Record.Sequence, Time: e.Record.Time}
}

func (r Record) attributes() trace.SpanStartEventOption {
	return trace.WithAttributes(attribute.String("perpetua.journal", r.Journal), attribute.Int64("perpetua.sequence", r.Sequence),
		attribute.String("perpetua.command.type", r.Type))
}

// Appended tells that a record was appended: when it was handed to the producer, and when it was acknowledged and known
// to be valid. c is the command that asked for it; nil for a record of the engine's own.
func (t *Tracer) Appended(c *Command, r Record, produced, complete time.Time) {
	if !t.Traces(r.Command) {
		return
	}
	ctx := context.Background()
	if c != nil {
		ctx = trace.ContextWithSpan(ctx, c.span)
	}
	own := ofRecord(r.Command)
	ctx = context.WithValue(ctx, wantedKey{}, wanted{own.TraceID(), own.SpanID()})
	_, span := t.tracer.Start(ctx, "record", trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(produced), r.attributes())
	span.End(trace.WithTimestamp(complete))
}

// Batch tells what became of records that were dealt with together.
type Batch struct {
	tracer *Tracer
	name   string
	began  time.Time
	traced []Record
	all    int
}

// StartBatch begins to tell of a batch of something that has a name, like "project trading". A nil tracer returns a nil
// batch.
func (t *Tracer) StartBatch(name string) *Batch {
	if t == nil {
		return nil
	}
	return &Batch{tracer: t, name: name, began: t.now()}
}

// Add counts a record, and keeps it if its command is traced and it has just come.
func (b *Batch) Add(r Record) {
	if b == nil {
		return
	}
	b.all++
	if len(b.traced) < maxLinks && b.tracer.traces(r.Command) && b.began.Sub(r.Time.Std()) < late {
		b.traced = append(b.traced, r)
	}
}

// End tells of the batch, if a record of it is traced: a span of its own with links to all of those, and in the trace of
// each of them a span that follows from the record.
func (b *Batch) End(err error) {
	if b == nil || len(b.traced) == 0 {
		return
	}
	ended := b.tracer.now()
	links := make([]trace.Link, 0, len(b.traced))
	for _, r := range b.traced {
		links = append(links, trace.Link{SpanContext: ofRecord(r.Command)})
	}
	_, whole := b.tracer.tracer.Start(context.Background(), b.name+" batch", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(b.began),
		trace.WithLinks(links...), trace.WithAttributes(attribute.Int("perpetua.records", b.all)))
	failed(whole, err)
	whole.End(trace.WithTimestamp(ended))
	link := trace.WithLinks(trace.Link{SpanContext: whole.SpanContext()})
	for _, r := range b.traced {
		b.tracer.follow(b.name, r, b.began, ended, err, link)
	}
}

// Followed tells what somebody did with a record by itself, like handing it to sockets, if its command is traced and it
// has just come.
func (t *Tracer) Followed(name string, r Record, began time.Time) {
	if !t.Traces(r.Command) {
		return
	}
	if ended := t.now(); ended.Sub(r.Time.Std()) < late {
		t.follow(name, r, began, ended, nil)
	}
}

// follow makes a span that follows from a record.
func (t *Tracer) follow(name string, r Record, began, ended time.Time, err error, options ...trace.SpanStartOption) {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), ofRecord(r.Command))
	options = append(options, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(began), r.attributes())
	_, span := t.tracer.Start(ctx, name, options...)
	failed(span, err)
	span.End(trace.WithTimestamp(ended))
}

func failed(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
}
