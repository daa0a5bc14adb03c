package journal_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestAFirstOwnerFoundsTakesAndServes(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	first := o.do(command(&add{"a", 3}))
	if got := first.Position.String(); got != "trading/0@2" {
		t.Errorf("the first command is at %s", got)
	}
	if e := first.Entry.Record.Events[0].(*added); e.Total != 3 {
		t.Errorf("total %d", e.Total)
	}
	second := o.do(command(&add{"a", 4}))
	if e := second.Entry.Record.Events[0].(*added); e.Total != 7 {
		t.Errorf("total %d", e.Total)
	}
	if got, at := o.total("a"); got != "7" || at != 3 {
		t.Errorf("a refusal says %s as of %d", got, at)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	all := r.all()
	if len(all) != 4 {
		t.Fatalf("%d records", len(all))
	}
	genesis, ok := all[0].Record.Events[0].(*record.Genesis)
	if !ok || all[0].Record.Prev != (record.Hash{}) || genesis.Partitions != 1 {
		t.Errorf("genesis: %s", all[0].Value)
	}
	if taken, ok := all[1].Record.Events[0].(*record.TermStarted); !ok || taken.Term != 1 || taken.Node != "n1" {
		t.Errorf("taken: %s", all[1].Value)
	}
	o2 := r.owner("n2").ready()
	if term, _ := o2.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
	if got, _ := o2.total("a"); got != "7" {
		t.Errorf("the next owner has %s", got)
	}
}
