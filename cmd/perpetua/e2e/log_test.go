package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// logFrom runs `perpetua log --from` and returns what it prints, and what it tells of where it begins to check.
func (v *venue) logFrom(from int64, args ...string) (records []string, told string, err error) {
	v.t.Helper()
	cmd := v.command(append([]string{"log", "--from", fmt.Sprint(from)}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return slices.Collect(strings.Lines(out.String())), said.String(), err
}

// checkLogFrom checks that later records are the same, whether the chain is checked from genesis on or from what the
// venue, which runs, remembers: it has a snapshot at a sequence, and an anchor at genesis.
func (v *venue) checkLogFrom(saved int64) {
	v.t.Helper()
	all := v.records("trading")
	for _, c := range []struct {
		from int64
		args []string
		told string
	}{
		{saved + 2, nil, "which a snapshot remembered"}, {5, nil, "from sequence 0 at offset 0"}, {5, nil, "the read models remembered"},
		{saved + 2, []string{"--check-all"}, ""}, {0, nil, ""},
	} {
		records, told, err := v.logFrom(c.from, c.args...)
		if err != nil || !strings.Contains(told, c.told) || c.told == "" && told != "" {
			v.t.Errorf("from %d %v: %v, and told is %q, without %q", c.from, c.args, err, told, c.told)
		}
		if len(records) == 0 || strings.TrimSpace(records[0]) != all[c.from] || len(records) != len(all)-int(c.from) {
			v.t.Errorf("from %d %v: %d records of %d, the first is %.200s", c.from, c.args, len(records), len(all), records)
		}
	}
}

// checkLogFromForged checks that a position is not believed which somebody gave a snapshot for a name, and that the venue
// need not run.
func (v *venue) checkLogFromForged() {
	v.t.Helper()
	if os.Getenv("KAFKA_BROKERS") != "" {
		return // a folder where nothing runs says nothing of the log of brokers that are named
	}
	files := v.snapshotFiles()
	newest := files[len(files)-1]
	var sequence, offset int64
	if _, err := fmt.Sscanf(filepath.Base(newest), "%d-%d-", &sequence, &offset); err != nil {
		v.t.Fatal(err)
	}
	if records, told, err := v.logFrom(sequence - 1); err != nil || len(records) < 2 || !strings.Contains(told, "a snapshot remembered") {
		v.t.Errorf("beside a venue that is stopped: %d records, told is %q: %v", len(records), told, err)
	}
	forged := filepath.Join(filepath.Dir(newest), fmt.Sprintf("%020d-%d-%s.1%s", sequence, offset, record.Hash{1}, filepath.Ext(newest)))
	if err := os.Rename(newest, forged); err != nil {
		v.t.Fatal(err)
	}
	defer func() {
		if err := os.Rename(forged, newest); err != nil {
			v.t.Fatal(err)
		}
	}()
	records, told, err := v.logFrom(sequence + 1)
	if err != nil || strings.Contains(told, fmt.Sprintf("from sequence %d ", sequence)) {
		v.t.Errorf("beside a forged position: %d records, told is %q: %v", len(records), told, err)
	}
	if records, told, err := v.logFrom(sequence, "--check-all"); err != nil || len(records) == 0 {
		v.t.Errorf("from genesis, beside a forged position: %d records, told is %q: %v", len(records), told, err)
	}
}
