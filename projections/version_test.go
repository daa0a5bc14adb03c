package projections_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestSchemaVersion(t *testing.T) {
	ctx := t.Context()
	pool, err := projections.Open(ctx, projectiontest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	have, newest, err := projections.SchemaVersion(ctx, pool)
	if err != nil || have != 0 || newest < 19 {
		t.Errorf("before the migration: %d of %d, %v", have, newest, err)
	}
	if _, err := projections.Migrate(ctx, pool); err != nil {
		t.Fatal(err)
	}
	if have, now, err := projections.SchemaVersion(ctx, pool); err != nil || have != newest || now != newest {
		t.Errorf("after the migration: %d of %d, %v", have, now, err)
	}
}
