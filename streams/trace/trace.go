// Package trace follows one command from its request, through the decision and the record, to the rows and the sockets,
// as OpenTelemetry spans.
//
// The log holds nothing for tracing. A record's key, headers and timestamp are functions of the record's value, which
// does not include a trace context. So the ids are derived from the command's id, which every reader has. It is a UUID
// of version 7, which has the size of a trace id and ends in 62 random bits:
//
//	trace id        = the command's id, all 16 bytes
//	the record's span = its last 8 bytes
//
// So every reader of a record, at any time and in any language, can compute its trace and its parent span. A request
// without a trace context uses the id that its command will have as its trace id. A request with a traceparent stays in
// the sender's trace, and that trace and the command's are linked to each other.
//
// Sampling also follows from the command's id: from its last 7 bytes, the random ones of W3C Trace Context 2, as in
// OpenTelemetry's consistent probability sampling. So all processes with the same ratio agree without communication.
// The sender of a request can only opt out: the interface is public, and a sender's flag must not decide how much is
// recorded.
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

// late is the age from which a record is not traced by its readers. So a reader that catches up or rebuilds creates no
// spans for old records.
const late = time.Minute

// maxLinks is the maximum number of traced records of one batch.
const maxLinks = 64

// Tracer creates the spans of a process. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	rejected uint64 // commands whose id has a random part below this number, of 2^56 values, are not traced
	now      func() time.Time
}

// randomness is the number of values of the random part of an id.
const randomness = 1 << 56

// New returns a tracer of a ratio of all commands, from 0 to 1. Options configure the SDK's provider, such as the
// processor that receives the spans.
func New(ratio float64, options ...sdk.TracerProviderOption) *Tracer {
	options = append(options, sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(ids{}))
	t := &Tracer{provider: sdk.NewTracerProvider(options...), now: time.Now}
	t.tracer = t.provider.Tracer("github.com/perpetua-exchange/perpetua")
	t.rejected = uint64(math.Round((1 - min(max(ratio, 0), 1)) * randomness))
	return t
}

// Close flushes the remaining spans.
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

// ofRecord returns the context of the span of the record that a command led to. Every reader can derive it from the
// command's id.
func ofRecord(id scalar.ID) trace.SpanContext {
	var span trace.SpanID
	copy(span[:], id[8:])
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(id), SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
}

// wanted holds, in the context of a span, the ids that the span must have. Zero ids are replaced by random ones.
type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

type wantedKey struct{}

// root returns a context in which the next span starts the trace of a command.
func root(ctx context.Context, w wanted) context.Context {
	return context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), wantedKey{}, w)
}

// Request is the span of a request, from its arrival to its response.
type Request struct {
	span trace.Span // nil in a zero Request; End then does nothing
	// Context carries the span. Pass it to StartCommand.
	Context context.Context
	// Command is the id to use for the request's command, so that both are in one trace.
	Command scalar.ID
}

// Sender is the trace context that a request arrived with.
type Sender struct {
	Parent, State string // its traceparent and tracestate headers, or ""
}

// StartRequest starts the span of a request. fresh is a new id for its command. The request has a span if that command
// is traced and the sender, if it sent a trace context, has sampled it. The other fields
// of the Request are set in any case.
func (t *Tracer) StartRequest(ctx context.Context, from Sender, fresh scalar.ID) Request {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": from.Parent, "tracestate": from.State})
	given := trace.SpanContextFromContext(ctx)
	r := Request{Command: fresh, span: trace.SpanFromContext(context.Background()), Context: ctx}
	traced := t.traces(fresh)
	switch {
	case given.IsValid() && !given.IsSampled():
		return r
	case given.IsValid() && traced:
		r.Context, r.span = t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	case given.IsValid():
		r.Context = trace.ContextWithRemoteSpanContext(ctx, given.WithTraceFlags(given.TraceFlags()&^trace.FlagsSampled))
	case traced:
		r.Context, r.span = t.tracer.Start(root(ctx, wanted{trace: trace.TraceID(fresh)}), "request", trace.WithSpanKind(trace.SpanKindServer))
	default:
		own := ofRecord(fresh)
		r.Context = trace.ContextWithRemoteSpanContext(ctx, own.WithTraceFlags(0))
	}
	return r
}

// End ends the span of a request. It records the method, the matched route, the status of the response and its error
// code, "" if there is none.
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

// Command is the span of a command at its owner; nil if the command is not traced. After StartCommand only End changes
// it.
type Command struct {
	tracer *Tracer
	ctx    context.Context
	span   trace.Span
}

// StartCommand starts the span of a command that is submitted to its owner. ctx is the context of the request: if that
// is in another trace, the two traces are linked. A nil tracer returns a nil command.
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

// Decided records when a command was submitted, when its decision began, and when the decision ended.
func (c *Command) Decided(submitted, began, ended time.Time) {
	if c == nil {
		return
	}
	_, wait := c.tracer.tracer.Start(c.ctx, "wait", trace.WithTimestamp(submitted))
	wait.End(trace.WithTimestamp(began))
	_, work := c.tracer.tracer.Start(c.ctx, "decide", trace.WithTimestamp(began))
	work.End(trace.WithTimestamp(ended))
}

// End ends the span of a command and records the name of the command's result.
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

// Record identifies a record in a span.
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

// Appended records the span of an appended record. produced is the time at which it was passed to the producer,
// complete the time at which it was acknowledged and known to be valid. c is the command that led to it; nil for a
// record that the engine wrote without a command.
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

// Batch collects the traced records of a batch for its spans.
type Batch struct {
	tracer *Tracer
	name   string
	began  time.Time
	traced []Record
	all    int
}

// StartBatch starts a batch of an operation with a name like "project trading". A nil tracer returns a nil batch.
func (t *Tracer) StartBatch(name string) *Batch {
	if t == nil {
		return nil
	}
	return &Batch{tracer: t, name: name, began: t.now()}
}

// Add counts a record, and keeps it for End if its command is traced and the record is recent.
func (b *Batch) Add(r Record) {
	if b == nil {
		return
	}
	b.all++
	if len(b.traced) < maxLinks && b.tracer.traces(r.Command) && b.began.Sub(r.Time.Std()) < late {
		b.traced = append(b.traced, r)
	}
}

// End creates the spans of the batch if a record of it is traced: one span for the batch with links to all traced
// records, and in the trace of each of these a span that follows from the record.
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

// Followed records a span for an operation on a single record, such as sending it to sockets, if its command is traced
// and the record is recent.
func (t *Tracer) Followed(name string, r Record, began time.Time) {
	if !t.Traces(r.Command) {
		return
	}
	if ended := t.now(); ended.Sub(r.Time.Std()) < late {
		t.follow(name, r, began, ended, nil)
	}
}

// follow creates a span that follows from a record.
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
