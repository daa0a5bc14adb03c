package decide

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

type counted struct {
	N int `json:"n"`
}

func (*counted) EventType() string { return "test.counted" }

type uncounted struct{}

func (*uncounted) EventType() string { return "test.uncounted" }

type count struct{ N int }

func (*count) CommandType() string { return "test.count" }

func (p *count) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*counted](r); ok {
		p.N = e.N
	}
	return nil
}

type miscount struct{}

func (*miscount) CommandType() string { return "test.miscount" }

func (*miscount) Reconstruct(*Evidence) error { return nil }

type counter struct{ total int }

func (c *counter) counted(e *counted) { c.total += e.N }

func (c *counter) setAside(*DueSetAside) { c.total = -1 }

func (c *counter) count(p *count) (Decision, error) {
	return Decision{Events: []Event{&counted{p.N}}}, nil
}

func counters() *Events[*counter] {
	return NewEvents(On((*counter).counted), Unapplied[*counter, uncounted](), On((*counter).setAside),
		Old[*counter]("test.counted", 7, func(jsontext.Value) (Event, error) { return &counted{7}, nil }))
}

// TestEventsAreAppliedByTheirRow also for the events that occur in every journal; those without a row change nothing.
func TestEventsAreAppliedByTheirRow(t *testing.T) {
	events, c := counters(), new(counter)
	for _, e := range []Event{&counted{2}, &uncounted{}, &counted{3}, &DuePutBack{}, &RulesActivated{}} {
		events.Apply(c, e)
	}
	if c.total != 5 {
		t.Errorf("counted %d, not 5", c.total)
	}
	if events.Apply(c, &DueSetAside{}); c.total != -1 {
		t.Errorf("a shared event with a row left %d", c.total)
	}
}

// TestTheTableReadsItsEvents in each version, and those that occur in every journal.
func TestTheTableReadsItsEvents(t *testing.T) {
	for _, read := range []struct {
		name    string
		version int
		data    string
		want    int
	}{{"test.counted", 1, `{"n":4}`, 4}, {"test.counted", 7, `{}`, 7}, {"test.uncounted", 1, `{}`, 0}, {TypeDueSetAside, 1, `{"entry":"a/b","error":"c"}`, 0}} {
		e, err := counters().Registry().Decode(read.name, read.version, jsontext.Value(read.data))
		if err != nil || e.EventType() != read.name {
			t.Errorf("%s version %d is read as %v (%v)", read.name, read.version, e, err)
		}
		if c, ok := e.(*counted); ok && c.N != read.want {
			t.Errorf("%s version %d is read as %+v", read.name, read.version, *c)
		}
	}
}

// TestCommandsAreDecidedByTheirRow: a payload without a row is refused.
func TestCommandsAreDecidedByTheirRow(t *testing.T) {
	commands := NewCommands(Handle((*counter).count))
	d, err := commands.Decide(new(counter), Command{Type: "test.count", Payload: &count{3}})
	if err != nil || len(d.Events) != 1 || d.Events[0].(*counted).N != 3 {
		t.Errorf("%+v (%v)", d, err)
	}
	var refused *Refusal
	for _, payload := range []any{&miscount{}, nil, &ActivateRules{}} {
		if _, err := commands.Decide(new(counter), Command{Type: "test.count", Payload: payload}); !errors.As(err, &refused) || refused.Code != "UNKNOWN_COMMAND" {
			t.Errorf("%T is decided (%v)", payload, err)
		}
	}
	if p, known := commands.Payloads().New("test.count"); !known || *p.(*count) != (count{}) {
		t.Errorf("the payload of test.count is %v", p)
	}
	if _, known := commands.Payloads().New(CommandPutBackDue); !known {
		t.Error("a command of every journal is unknown")
	}
}
