package projections_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestBasesInPostgres(t *testing.T) {
	ctx, bases := t.Context(), projections.Bases{Pool: projectiontest.Database(t)}
	at := func(sequence int64) record.Base {
		return record.Base{Journal: "trading", Partitions: 1, JournalID: scalar.ID{1, 2}, Sequence: sequence, Prev: record.Hash{byte(sequence), 9}, Term: 1}
	}
	if b, err := bases.Base(ctx, "trading", 0); b != nil || err != nil {
		t.Fatalf("at first: %v, %v", b, err)
	}
	for _, b := range []record.Base{at(10), at(10), at(20)} {
		if err := bases.Keep(ctx, b); err != nil {
			t.Fatal(err)
		}
		if got, err := bases.Base(ctx, "trading", 0); err != nil || *got != b {
			t.Errorf("%v, %v, want %v", got, err, b)
		}
	}
	other, forged := at(30), at(20)
	other.JournalID, forged.Prev = scalar.ID{3}, record.Hash{8}
	for what, b := range map[string]record.Base{"older": at(15), "of another journal": other, "of another hash": forged, "invalid": {}} {
		if err := bases.Keep(ctx, b); err == nil {
			t.Errorf("a base that is %s was kept", what)
		}
	}
	if err := projections.Forget(ctx, bases.Pool, "trading"); err != nil {
		t.Fatal(err)
	}
	if b, err := bases.Base(ctx, "trading", 0); b != nil || err != nil {
		t.Errorf("forgotten: %v, %v", b, err)
	}
	if _, err := bases.Pool.Exec(ctx, "DROP TABLE bases"); err != nil {
		t.Fatal(err)
	}
	if b, err := bases.Base(ctx, "trading", 0); b != nil || err != nil {
		t.Errorf("in a database of an earlier version: %v, %v", b, err)
	}
}
