package trace

import (
	"context"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// newID returns a UUID of version 7 whose random bits follow from a seed.
func newID(r *rand.Rand) (id scalar.ID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// recorded returns a tracer and the spans that it has ended.
func recorded(ratio float64) (*Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return New(ratio, sdk.WithSpanProcessor(spans)), spans
}

func byName(t *testing.T, r *tracetest.SpanRecorder) map[string]sdk.ReadOnlySpan {
	t.Helper()
	out := make(map[string]sdk.ReadOnlySpan)
	for _, s := range r.Ended() {
		if out[s.Name()] != nil {
			t.Errorf("there are two spans %q", s.Name())
		}
		out[s.Name()] = s
	}
	return out
}

// tell makes the spans of a request and what follows from it, as three processes would: the node that took the request,
// the owner that it sent the command to, and a projector that knows only the record.
func tell(front, owner, projector *Tracer, parent string, id scalar.ID) {
	r := front.StartRequest(context.Background(), Sender{Parent: parent}, id)
	c := owner.StartCommand(Carry(r.Context).In(context.Background()), id, "order.place", "trading")
	now := time.Now()
	record := Record{Command: id, Type: "order.place", Journal: "trading", Sequence: 7, Time: scalar.TimeOf(now)}
	c.Decided(now, now, now)
	owner.Appended(c, record, now, now)
	c.End("answered")
	r.End("POST", "/orders", 201, "")
	b := projector.StartBatch("project trading")
	b.Add(record)
	b.End(nil)
	projector.Followed("deliver trading", record, now)
}

func TestOneTraceWithoutHeaders(t *testing.T) {
	tracer, spans := recorded(1)
	id := newID(seeded())
	tell(tracer, tracer, tracer, "", id)
	got := byName(t, spans)
	for name, parent := range map[string]string{"POST /orders": "", "submit order.place": "POST /orders",
		"wait": "submit order.place", "decide": "submit order.place", "record": "submit order.place", "project trading": "record",
		"deliver trading": "record"} {
		s := got[name]
		if s == nil {
			t.Fatalf("there is no span %q in %v", name, got)
		}
		if s.SpanContext().TraceID() != trace.TraceID(id) {
			t.Errorf("%s is in trace %v, want the command's id", name, s.SpanContext().TraceID())
		}
		want := trace.SpanID{}
		if parent != "" {
			want = got[parent].SpanContext().SpanID()
		}
		if s.Parent().SpanID() != want {
			t.Errorf("%s has the parent %v, want %q %v", name, s.Parent().SpanID(), parent, want)
		}
	}
	if s := got["record"].SpanContext().SpanID(); s != trace.SpanID(id[8:]) {
		t.Errorf("the record's span is %v, want the last bytes of %v", s, id)
	}
	batch := got["project trading batch"]
	if l := batch.Links(); len(l) != 1 || l[0].SpanContext.TraceID() != trace.TraceID(id) || l[0].SpanContext.SpanID() != trace.SpanID(id[8:]) {
		t.Errorf("the batch has the links %v", l)
	}
}

func TestTraceOfTheSenderIsLinked(t *testing.T) {
	tracer, spans := recorded(1)
	id := newID(seeded())
	const theirs = "0af7651916cd43dd8448eb211c80319c"
	tell(tracer, tracer, tracer, "00-"+theirs+"-b7ad6b7169203331-01", id)
	got := byName(t, spans)
	request, submit := got["POST /orders"], got["submit order.place"]
	if s := request.SpanContext().TraceID().String(); s != theirs {
		t.Errorf("the request is in trace %s, want the sender's", s)
	}
	if p := request.Parent().SpanID().String(); p != "b7ad6b7169203331" {
		t.Errorf("the request has the parent %s", p)
	}
	if submit.SpanContext().TraceID() != trace.TraceID(id) || submit.Parent().IsValid() {
		t.Errorf("the command is in trace %v below %v", submit.SpanContext().TraceID(), submit.Parent())
	}
	if l := submit.Links(); len(l) != 1 || l[0].SpanContext.SpanID() != request.SpanContext().SpanID() {
		t.Errorf("the command has the links %v", l)
	}
}

// TestAllProcessesAgree traces many commands in three processes of one ratio: each has all its spans, or none.
func TestAllProcessesAgree(t *testing.T) {
	const n, ratio = 4000, 0.25
	r := seeded()
	front, a := recorded(ratio)
	owner, b := recorded(ratio)
	projector, c := recorded(ratio)
	for range n {
		tell(front, owner, projector, "", newID(r))
	}
	traced := len(a.Ended())
	if sd := math.Sqrt(n * ratio * (1 - ratio)); math.Abs(float64(traced)-n*ratio) > 5*sd {
		t.Errorf("%d of %d are traced, want about %v", traced, n, n*ratio)
	}
	if got, want := len(b.Ended()), 4*traced; got != want {
		t.Errorf("the owner has %d spans, want %d", got, want)
	}
	if got, want := len(c.Ended()), 3*traced; got != want {
		t.Errorf("the projector has %d spans, want %d", got, want)
	}
	if none, spans := recorded(0); true {
		tell(none, none, none, "", newID(r))
		if len(spans.Ended()) != 0 {
			t.Error("a ratio of 0 traces")
		}
	}
}

// TestTheSenderSaysNo leaves out the request of a trace that its sender does not record; the command's own trace does
// not depend on that.
func TestTheSenderSaysNo(t *testing.T) {
	tracer, spans := recorded(1)
	tell(tracer, tracer, tracer, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", newID(seeded()))
	got := byName(t, spans)
	if got["POST /orders"] != nil || got["record"] == nil {
		t.Errorf("the spans are %v", got)
	}
}

// TestTheSenderDoesNotDecideHowMuch has senders record all their traces: of their requests as many are traced as of any,
// and each of those whole, at every node.
func TestTheSenderDoesNotDecideHowMuch(t *testing.T) {
	const n, theirs = 400, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r := seeded()
	for _, ratio := range []float64{0, 0.25, 1} {
		front, a := recorded(ratio)
		owner, b := recorded(ratio)
		projector, _ := recorded(ratio)
		traced := 0
		for range n {
			id := newID(r)
			if front.Traces(id) {
				traced++
			}
			tell(front, owner, projector, theirs, id)
		}
		if len(a.Ended()) != traced || len(b.Ended()) != 4*traced || ratio == 0 && traced != 0 || ratio == 1 && traced != n {
			t.Errorf("ratio %v: of %d commands %d are traced, with %d requests, and %d spans at the owner", ratio, n, traced, len(a.Ended()), len(b.Ended()))
		}
	}
	none, spans := recorded(0)
	left := none.StartRequest(context.Background(), Sender{Parent: theirs, State: "a=b"}, newID(r))
	if c := Carry(left.Context); hex.EncodeToString(c) != "0af7651916cd43dd8448eb211c80319cb7ad6b716920333100" || len(spans.Started()) != 0 {
		t.Errorf("one that is not traced is passed on with the context %x", []byte(c))
	}
}

func TestReadersDoNotTellOfThePast(t *testing.T) {
	tracer, spans := recorded(1)
	r := seeded()
	b := tracer.StartBatch("project trading")
	for i := range 3 * maxLinks {
		at := time.Now()
		if i%2 == 0 {
			at = at.Add(-2 * late)
		}
		record := Record{Command: newID(r), Journal: "trading", Sequence: int64(i), Time: scalar.TimeOf(at)}
		b.Add(record)
		if i%2 == 0 {
			tracer.Followed("deliver trading", record, at)
		}
	}
	b.End(context.DeadlineExceeded)
	if n := len(spans.Ended()); n != maxLinks+1 {
		t.Errorf("%d spans, want one for each of %d records and one for all", n, maxLinks)
	}
	for _, s := range spans.Ended() {
		if s.Status().Code != codes.Error {
			t.Errorf("%s does not say that it failed", s.Name())
		}
	}
}

func TestBadTraceparent(t *testing.T) {
	tracer, spans := recorded(1)
	id := newID(seeded())
	for _, bad := range []string{"nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01", strings.Repeat("0", 1000)} {
		r := tracer.StartRequest(context.Background(), Sender{Parent: bad}, id)
		r.End("GET", "/", 200, "")
	}
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID() != trace.TraceID(id) {
			t.Errorf("a bad traceparent gave the trace %v", s.SpanContext().TraceID())
		}
	}
	if len(spans.Ended()) != 3 {
		t.Errorf("%d spans, want 3", len(spans.Ended()))
	}
}

// TestOffCostsNothing holds every call of the hot path against no allocation.
func TestOffCostsNothing(t *testing.T) {
	off := off()
	id := newID(seeded())
	if n := testing.AllocsPerRun(100, func() { hotPath(off, id) }); n != 0 {
		t.Errorf("turned off, a command costs %v allocations", n)
	}
}

func off() *Tracer { return nil }

// hotPath is what the order path and the readers call for one command.
func hotPath(t *Tracer, id scalar.ID) {
	c := t.StartCommand(context.Background(), id, "order.place", "trading")
	if c != nil {
		c.Decided(time.Time{}, time.Time{}, time.Time{})
	}
	if t.Traces(id) {
		t.Appended(c, Record{}, time.Time{}, time.Time{})
	}
	c.End("answered")
	b := t.StartBatch("live trading")
	if b != nil {
		b.Add(Record{Command: id})
	}
	b.End(nil)
}

func BenchmarkOff(b *testing.B) {
	t, id := off(), newID(seeded())
	b.ReportAllocs()
	for b.Loop() {
		hotPath(t, id)
	}
}

// BenchmarkNotTraced is what a command costs that tracing is on for and that is not among those that are traced.
func BenchmarkNotTraced(b *testing.B) {
	t, id := New(0), newID(seeded())
	b.ReportAllocs()
	for b.Loop() {
		hotPath(t, id)
	}
}

// BenchmarkTraced is what a command costs that is traced, without the sending.
func BenchmarkTraced(b *testing.B) {
	t, id := New(1, sdk.WithSpanProcessor(nothing{})), newID(seeded())
	b.ReportAllocs()
	for b.Loop() {
		hotPath(t, id)
	}
}

// nothing is a processor that throws spans away.
type nothing struct{}

func (nothing) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (nothing) OnEnd(sdk.ReadOnlySpan)                     {}
func (nothing) Shutdown(context.Context) error             { return nil }
func (nothing) ForceFlush(context.Context) error           { return nil }
