package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// result runs a command that must succeed, and decodes what it prints.
func result[T any](v *venue, args ...string) (out T) {
	v.t.Helper()
	cmd := v.command(args...)
	said := new(output)
	cmd.Stderr = said
	printed, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(printed, &out)
	}
	if err != nil {
		v.t.Fatalf("perpetua %s: %v\n%s\n%s", strings.Join(args, " "), err, printed, said)
	}
	return out
}

// TestToolsPrintJSON runs the tools with --json on a venue.
func TestToolsPrintJSON(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	v.start()
	t.Cleanup(v.stop)
	type audit struct {
		Equal       bool
		Positions   []string
		Differences []string
	}
	if got := result[audit](v, "audit", "--json"); !got.Equal || len(got.Positions) != 3 || got.Differences == nil || !strings.Contains(strings.Join(got.Positions, " "), "trading/0@") {
		t.Errorf("audit: %+v", got)
	}
	type rebuild struct {
		Positions, Differences []string
		Tables                 []struct{ Table string }
		Switched               bool
	}
	compared := result[rebuild](v, "rebuild", "--json", "--compare-only")
	if compared.Switched || len(compared.Positions) != 3 || compared.Differences == nil || compared.Tables == nil || len(compared.Tables) != 0 {
		t.Errorf("rebuild --compare-only: %+v", compared)
	}
	if got := result[rebuild](v, "rebuild", "--json"); !got.Switched {
		t.Errorf("rebuild: %+v", got)
	}
	if got := result[struct{ Sequence *int64 }](v, "log", "--json", "--to", "0"); got.Sequence == nil || *got.Sequence != 0 {
		t.Errorf("log: %+v", got)
	}
	type copied struct {
		Journal  string
		Records  int64
		Sequence int64
		Hash     string
	}
	file := filepath.Join(t.TempDir(), "backup.zst")
	copies := result[[]copied](v, "log", "copy", "--json", "--from", v.dir, "--to", file)
	if len(copies) != 3 {
		t.Errorf("log copy: %+v", copies)
	}
	for _, c := range copies {
		if c.Records < c.Sequence || c.Sequence < 1 || len(c.Hash) != 64 {
			t.Errorf("log copy: %+v", c)
		}
	}
	v.stop()
	type forgotten struct {
		Journal              string
		Positions, Witnesses int
	}
	if got := result[forgotten](v, "admin", "forget-log", "--json", "--journal", "trading"); got.Journal != "trading" || got.Positions < 1 || got.Witnesses < 1 {
		t.Errorf("forget-log: %+v", got)
	}
}

// TestAnotherMasterKey starts a venue again with another master key. The error comes before the broker is started.
func TestAnotherMasterKey(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in the data folder")
	}
	t.Parallel()
	v := newVenue(t)
	v.env = append(v.env, "PERPETUA_MASTER_KEY="+strings.Repeat("A", 43)+"=")
	v.start()
	t.Cleanup(v.stop)
	v.stop()
	port := filepath.Join(v.dir, "kafka", "port")
	if err := os.Chtimes(port, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	code, said := v.outcome([]string{"PERPETUA_MASTER_KEY=" + strings.Repeat("B", 42) + "A="}, "run", "--demo=false")
	if code != exitFailed || !strings.Contains(said, "was sealed with master key") || strings.Contains(said, "broker started") {
		t.Errorf("with another key it exits with %d and says:\n%s", code, said)
	}
	if about, err := os.Stat(port); err != nil || !about.ModTime().Equal(time.Unix(1, 0)) {
		t.Errorf("the broker was started: %v, %v", about, err)
	}
	v.start() // the right key is still accepted
}
