package trading

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestDueTable checks that every kind of due work is in the table, and that what blocks clients stands before what
// alternates with them.
func TestDueTable(t *testing.T) {
	last := decide.Blocking
	for kind, row := range dueTable {
		if row.dueHandler == nil || row.urgency != decide.Blocking && row.urgency != decide.Alternate {
			t.Errorf("kind %d is not in the table", kind)
		}
		if row.urgency > last {
			t.Errorf("kind %d blocks, and stands behind what does not", kind)
		}
		last = row.urgency
	}
}

// TestOrderOfDueWork checks what is done first: a task whatever the time, then by time, at one time by kind, then by
// arrival; and that the due list shows it in that order, and what was set aside with its error.
func TestOrderOfDueWork(t *testing.T) {
	d := newDesk(t)
	d.must(decide.Command{Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")}})
	d.customer("alice", "alpha")
	d.customer("bob", "alpha")
	start := d.now
	expires := func(after scalar.Time) string {
		o := limitOrder("alice", order.Buy, 640_000, 1)
		o.TimeInForce, o.ExpireTime = order.GTD, start+after
		return "expiry/" + d.place("alpha", o).Events[0].(OrderEvent).After().Code.String()
	}
	arm := func(customer string) {
		d.must(decide.Command{Actor: trader("alpha"), Payload: &SetCancelAllAfter{CustomerCode: customer, TimeoutSeconds: int((start + scalar.Minute - d.now) / scalar.Second)}})
	}
	late, early := expires(2*scalar.Minute), expires(30*scalar.Second)
	same := expires(scalar.Minute)
	arm("bob")
	at := d.state.accounts["bob"].cancelAllAfter.Time
	if at > start+scalar.Minute {
		t.Fatalf("armed for %s", at)
	}
	var names []string
	shown := func() []string {
		entries, total := d.state.DueEntries(0, 100)
		names = names[:0]
		for _, e := range entries {
			names = append(names, e.Entry)
		}
		if total != len(names) {
			t.Errorf("%d entries of %d", len(names), total)
		}
		return names
	}
	expect := func(want ...string) {
		t.Helper()
		want = append(want, "funding/BTCUSDC_PERP", "settlement/daily") // later than all else
		got := shown()
		if len(got) != len(want) {
			t.Fatalf("the list is %v, not %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("the list is %v, not %v", got, want)
			}
		}
	}
	expect(early, "cancel_all_after/bob", same, late)
	if some, total := d.state.DueEntries(1, 2); total != 6 || len(some) != 2 || some[0].Entry != "cancel_all_after/bob" || some[0].Time != at {
		t.Errorf("%v of %d", some, total)
	}
	// A task is done before what was due earlier, and blocks clients.
	d.state.limit.others = 1
	d.now = start + scalar.Minute
	d.append(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, d.state.SetAside(d.stamp(), "it is broken"))
	if aside := d.state.SetAsideEntries(); len(aside) != 1 || aside[0].Entry != early || aside[0].Error != "it is broken" {
		t.Errorf("set aside: %v", aside)
	}
	expect("cancel_all_after/bob", same, late)
	// Once it is put back it stands where it stood.
	d.append(decide.Recorded{Type: decide.CommandPutBackDue, Actor: operator}, decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&decide.DuePutBack{Entry: early}}})
	expect(early, "cancel_all_after/bob", same, late)
	if d.state.Due(d.now) != decide.Alternate {
		t.Error("a dead-man switch blocks clients")
	}
	c := decide.Command{ID: scalar.ID{9}, Type: CommandCancelAll, Actor: trader("alpha"), Payload: &CancelAll{CustomerCode: "alice"}}
	opened, err := d.state.Decide(d.stamp(), c)
	if err != nil {
		t.Fatal(err)
	}
	d.append(c.Recorded(), opened)
	if d.state.Due(d.now) != decide.Blocking {
		t.Error("a mass cancel that goes on does not block clients")
	}
	task := "mass_cancel/" + c.ID.String()
	if got := shown(); got[0] != task {
		t.Errorf("first comes %s", got[0])
	}
	if step := d.state.Step(d.stamp(), false).Events[0].(*Step); step.Work != WorkMassCancel {
		t.Errorf("first comes %s", step.Work)
	}
}
