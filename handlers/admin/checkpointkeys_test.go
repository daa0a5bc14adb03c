package admin_test

import (
	"encoding/json"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestCheckpointKeys rotates the key of a journal's log once in 30 days.
func TestCheckpointKeys(t *testing.T) {
	v := tradingtest.New(t)
	const at = base + "/checkpoint-keys/trading/rotate"
	type answer struct {
		Journal       string
		Generation    int
		Previous, Key string
		Until         scalar.Time
	}
	rotate := func(key string) (a answer, body string) {
		t.Helper()
		body = v.Send("operator", "POST", at, "", "Idempotency-Key", key).Want(200).Body
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		return a, body
	}
	first, body := rotate("r1")
	if first.Journal != "trading" || first.Generation != 2 || checkpointkey.Check(first.Key) != nil || first.Until < scalar.TimeOf(tradingtest.Start)+30*scalar.Day {
		t.Errorf("%+v", first)
	}
	if _, again := rotate("r1"); again != body {
		t.Errorf("repeated it is %s", again)
	}
	v.Send("operator", "POST", at, "").Code(409, "CHECKPOINT_KEYS_OVERLAP")
	v.Advance(31 * scalar.Day)
	if second, _ := rotate("r2"); second.Generation != 3 || second.Previous != first.Key {
		t.Errorf("%+v follows %+v", second, first)
	}
}
