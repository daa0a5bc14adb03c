package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/book"
)

// TestRow judges rows as the table shows them.
func TestRow(t *testing.T) {
	r := Row{Measure: "m", Unit: "u", Against: "other", Aim: atLeast(2),
		Ours: Sample{Rounds: []float64{9, 4, 1}}, Baseline: Sample{Rounds: []float64{3, 1, 1}}}
	r.judge()
	if r.Ours.Median != 4 || r.Ours.Low != 1 || r.Ours.High != 9 || r.Ratio.Median != 3 || r.Met == nil || !*r.Met {
		t.Errorf("judged as %+v", r)
	}
	if text, err := json.Marshal(r); err != nil || !strings.Contains(string(text), `"baseline":{`) {
		t.Errorf("the report has %s, %v", text, err)
	}
	most := Row{Ours: Sample{Rounds: []float64{1, 2}}, Aim: atMost(1.4)}
	most.judge()
	if most.Ours.Median != 1.5 || *most.Met {
		t.Errorf("judged as %+v", most)
	}
	more := Row{Ours: Sample{Rounds: []float64{9, 8, 4}}, Baseline: Sample{Rounds: []float64{2, 3, 1}}, Aim: atMostMore(5)}
	if more.judge(); more.More.Median != 5 || !*more.Met || !more.Ratio.IsZero() {
		t.Errorf("judged as %+v", more)
	}
	var out strings.Builder
	printTable(&out, []Row{r, most, more})
	for _, want := range []string{"MEASURE", "5.00 (3.00–7.00) more", "≤ 5.00 more", "4.00 (1.00–9.00)", "≥ 2.00", "met", "≤ 1.40", "missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

// TestUsage refuses what it does not know.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"--only", "nothing"}, {"--rounds", "0"}, {"more"}, {"child", "nobody"}, {"--unknown"}} {
		var wrong *usageError
		if err := run(t.Context(), args, strings.NewReader(""), io.Discard, io.Discard); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
		if code := execute(t.Context(), args, strings.NewReader(""), io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%q exits with %d", args, code)
		}
	}
	var log strings.Builder
	if code := execute(t.Context(), []string{"-h"}, strings.NewReader(""), io.Discard, &log); code != exitDone || !strings.Contains(log.String(), "-only") {
		t.Errorf("-h exits with %d: %s", code, &log)
	}
	if code := execute(t.Context(), []string{"--only", "reads", "--perpetua", t.TempDir() + "/none"}, strings.NewReader(""), io.Discard, &log); code != exitFailed ||
		!strings.Contains(log.String(), "bench: 1 of 1 measures failed: reads: start a venue: ") {
		t.Errorf("without a binary it exits with %d: %s", code, &log)
	}
}

// TestStepsAreCountedFromBeforeTheInstant covers an engine that posts everything before it accepts the first order after the instant.
func TestStepsAreCountedFromBeforeTheInstant(t *testing.T) {
	a := newAccepted(100)
	if n := a.steps(); n != 0 {
		t.Errorf("%d steps before anything", n)
	}
	a.note(151) // after fifty steps
	if n := a.steps(); n != 50 {
		t.Errorf("%d steps, want 50", n)
	}
	a.note(153)
	a.note(152) // whose answer came later
	if n := a.steps(); n != 50 {
		t.Errorf("%d steps after more orders, want 50", n)
	}
	a.note(155)
	if n := a.steps(); n != 51 {
		t.Errorf("%d steps, want 51", n)
	}
}

// TestOneMeasureThatFails checks that a failed measure is reported and that the others run.
func TestOneMeasureThatFails(t *testing.T) {
	var log, out strings.Builder
	b := &bench{log: &log, rounds: 1}
	row := func(name string) measure {
		return measure{name, "it works", func(_ context.Context, b *bench) error {
			b.add(Row{Measure: name, Unit: "u", Ours: Sample{Rounds: []float64{1}}})
			return nil
		}}
	}
	chosen := []measure{row("first"), {"second", "it fails", func(context.Context, *bench) error { return errors.New("it is broken") }}, row("third")}
	b.measure(t.Context(), chosen)
	file := t.TempDir() + "/bench.json"
	if err := b.print(&out, file); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "third", "second FAILED: it is broken"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q: %s", want, &out)
		}
	}
	if !strings.Contains(string(content), `"error": "it is broken"`) || !strings.Contains(log.String(), "third: it works") {
		t.Errorf("%s\n%s", content, &log)
	}
	if err := b.verdict(len(chosen)); err == nil || err.Error() != "1 of 3 measures failed: second: it is broken" {
		t.Errorf("%v", err)
	}
	b = &bench{log: &log}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	b.measure(ctx, chosen)
	if len(b.rows) > 0 || len(b.failed) != 3 {
		t.Errorf("interrupted: %v, %v", b.rows, b.failed)
	}
}

// startChild runs a child in this process and returns how to talk to it.
func startChild(t *testing.T, name string) (*json.Encoder, *json.Decoder) {
	t.Helper()
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := runChild(context.Background(), name, in, out)
		out.CloseWithError(io.EOF)
		done <- err
	}()
	t.Cleanup(func() {
		requests.Close()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return json.NewEncoder(requests), json.NewDecoder(answers)
}

// TestLoad has the load child drive the bare Echo, as the bench does with processes.
func TestLoad(t *testing.T) {
	requests, replies := startChild(t, "noop")
	var ready rivalReady
	exchange(t, requests, replies, rivalConfig{Answer: []byte(`{"code":"x"}`)}, &ready)
	requests, replies = startChild(t, "load")
	exchange(t, requests, replies, loadConfig{URL: ready.URL, Token: "t"}, new(struct{}))
	for _, connections := range []int{1, 4} {
		var r loadReply
		for lasts := 50 * time.Millisecond; r.Count == 0 && lasts < time.Minute; lasts *= 4 { // a busy machine may answer nothing in a moment
			exchange(t, requests, replies, loadRequest{connections, lasts}, &r)
		}
		if r.Count == 0 || r.PerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 || string(r.Sample) != `{"code":"x"}` {
			t.Errorf("%d connections: %+v", connections, r)
		}
	}
}

func exchange(t *testing.T, requests *json.Encoder, replies *json.Decoder, request, reply any) {
	t.Helper()
	if err := requests.Encode(request); err != nil {
		t.Fatal(err)
	}
	if err := replies.Decode(reply); err != nil {
		t.Fatal(err)
	}
}

// TestBooksAgree puts both books through one flow: a rival that does less would be no measure.
func TestBooksAgree(t *testing.T) {
	ours, theirs := &venueBook{}, newPlainBook()
	f := newBookFlow(50)
	for range 100 {
		op := f.resting()
		ours.apply(&op)
		theirs.apply(&op)
	}
	for i, op := range f.ops(5000) {
		ours.apply(&op)
		theirs.apply(&op)
		if ours.size() != theirs.size() {
			t.Fatalf("after operation %d: %d orders rest, and %d", i, ours.size(), theirs.size())
		}
		for _, side := range []book.Side{book.Bid, book.Ask} {
			l, other := ours.book.Best(side), int64(math.MinInt64)
			if level, ok := theirs.sides[side].Min(); ok {
				other = level.price<<16 + level.amount
			}
			if l != nil && l.Price<<16+l.Amount != other || l == nil && other != math.MinInt64 {
				t.Fatalf("after operation %d: the best levels of side %d differ", i, side)
			}
		}
	}
}

// TestFlow decides orders of the flow; the rules reject none of them, and a tenth trades.
func TestFlow(t *testing.T) {
	entries, err := flow(2000)
	if err != nil {
		t.Fatal(err)
	}
	rejected, traded := 0, 0
	for _, e := range entries {
		for _, event := range e.Record.Events {
			switch event.EventType() {
			case "order.rejected":
				rejected++
			case "trade.executed":
				traded++
			}
		}
	}
	if rejected > 0 || traded < 100 {
		t.Errorf("%d rejected and %d trades of 2000 orders", rejected, traded)
	}
	if o := restingOrder(rand.New(rand.NewPCG(1, 1)), 3); o.CustomerCode != "BENCH-03" {
		t.Errorf("the order of %s", o.CustomerCode)
	}
}

// TestFrames tells frames apart however they arrive.
func TestFrames(t *testing.T) {
	stream := append([]byte{0x81, 5}, "hello"...)
	stream = append(append(stream, 0x81, 126, 1, 0), make([]byte, 256)...)
	stream = append(stream, 0x89, 0, 0x81, 0, 0x81, 1, 'x')
	for size := 1; size <= len(stream); size++ {
		var f frameCounter
		n := int64(0)
		for at := 0; at < len(stream); at += size {
			n += f.count(stream[at:min(at+size, len(stream))])
		}
		if n != 4 {
			t.Errorf("in pieces of %d bytes there are %d messages, want 4", size, n)
		}
	}
}
