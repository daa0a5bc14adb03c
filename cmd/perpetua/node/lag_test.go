package node

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
)

// TestTheLagOfRowsIsNoMatterOfHints has rows that stand at the log's last record be read again by a projector that knows only
// their checkpoint, whose offset is that of another copy of the log.
func TestTheLagOfRowsIsNoMatterOfHints(t *testing.T) {
	b := newBench(t, journals.All())
	b.config.Alone = false
	engine, projector := b.config, b.config
	engine.ID, engine.Roles = "engine", Roles{Engine: true}
	projector.ID, projector.Roles = "projector", Roles{Projector: true}
	b.run(t, engine)
	_, stop := b.run(t, projector)
	stop()
	pool, err := projections.Open(t.Context(), b.config.DatabaseURL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if tag, err := pool.Exec(t.Context(), `UPDATE checkpoints SET log_offset = log_offset + CASE journal WHEN 'trading' THEN 1000 ELSE -1 END`); err != nil || tag.RowsAffected() != int64(len(journals.All())) {
		t.Fatal(tag, err)
	}
	n, _ := b.run(t, projector)
	for _, name := range journals.All().Names() {
		eventually(t, name+": no lag of the rows", func() string { // the engine may have added a record
			if lag := n.metric(t, "perpetua_reader_lag_records", `journal="`+name+`"`, `reader="projections"`); lag != 0 {
				return fmt.Sprintf("the rows are said to be %v records behind", lag)
			}
			return ""
		})
	}
}
