package admin_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// disclosed is a response with epoch keys.
type disclosed struct {
	JournalID scalar.ID `json:"journal_id"`
	From      int64     `json:"from"`
	To        int64     `json:"to"`
	Keys      []struct {
		From       int64  `json:"from"`
		To         int64  `json:"to"`
		Generation int    `json:"generation"`
		Key        []byte `json:"key"`
	} `json:"keys"`
}

// TestCommitments rotates the secret of a journal and discloses the keys around it.
func TestCommitments(t *testing.T) {
	v := tradingtest.New(t)
	disclose := func(from, to int64, headers ...string) (d disclosed) {
		t.Helper()
		body := `{"from":` + strconv.FormatInt(from, 10) + `,"to":` + strconv.FormatInt(to, 10) + `,"recipient":"Auditors & Co."}`
		if err := json.Unmarshal([]byte(v.Send("operator", "POST", base+"/commitments/trading/disclose", body, headers...).Want(200).Body), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	secrets := seal.NewGenerations(v.Owners.Store(), v.Box)
	check := func(d disclosed) {
		t.Helper()
		for _, k := range d.Keys {
			s, err := secrets.Get(t.Context(), k.Generation)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := commitment.NewEpochKey(s.Key, d.JournalID, k.From/4096); err != nil || string(want.Bytes()) != string(k.Key) {
				t.Errorf("the key of %d to %d is another (%v)", k.From, k.To, err)
			}
		}
	}
	v.Send("operator", "POST", base+"/commitments/trading/disclose", `{"from":0,"to":1,"recipient":"a"}`).Code(409, "SECRET_NOT_NAMED")
	v.Send("operator", "POST", base+"/commitments/trading/rotate", "").Want(200)
	first := disclose(0, 1, "Idempotency-Key", "d1")
	if check(first); len(first.Keys) != 1 || first.From != 0 || first.To != 4095 || first.Keys[0].Generation != 1 || first.JournalID.IsZero() {
		t.Errorf("the keys are %+v", first)
	}
	made := v.Send("operator", "POST", base+"/commitments/trading/rotate", "", "Idempotency-Key", "r1").Want(200)
	second, err := secrets.Get(t.Context(), 2)
	if err != nil || !strings.Contains(made.Body, `"generation":2,"secret":"`+second.ID+`"`) {
		t.Errorf("%s: %v", made.Body, err)
	}
	if again := v.Send("operator", "POST", base+"/commitments/trading/rotate", "", "Idempotency-Key", "r1").Want(200); again.Body != made.Body {
		t.Errorf("repeated it is %s", again.Body)
	}
	if _, err := secrets.Get(t.Context(), 3); err == nil {
		t.Error("a repeated request makes another secret")
	}
	tip := disclose(0, 0).To // the record of the rotation ends the first span
	both := disclose(0, tip+1)
	if check(both); len(both.Keys) != 2 || both.Keys[0].To != tip || both.Keys[1].From != tip+1 || both.Keys[1].Generation != 2 || both.To != 4095 {
		t.Errorf("after record %d the keys are %+v", tip, both)
	}
	// The record says what was disclosed. The keys are the same, although a rotation has cut the span since.
	repeated := disclose(0, 1, "Idempotency-Key", "d1")
	if check(repeated); repeated.To != 4095 || len(repeated.Keys) != 2 || string(repeated.Keys[0].Key) != string(first.Keys[0].Key) {
		t.Errorf("repeated the keys are %+v", repeated)
	}
}

func TestCommitmentsThatAreRefused(t *testing.T) {
	v := tradingtest.New(t)
	at := base + "/commitments/trading"
	for _, c := range []struct {
		who, path, body string
		status          int
		code            string
	}{
		{"auditor", at + "/rotate", "", 403, "FORBIDDEN"},
		{"auditor", at + "/disclose", `{"from":0,"to":1,"recipient":"a"}`, 403, "FORBIDDEN"},
		{"operator", base + "/commitments/nothing/rotate", "", 404, "UNKNOWN_JOURNAL"},
		{"operator", base + "/commitments/nothing/disclose", `{"from":0,"to":1,"recipient":"a"}`, 404, "UNKNOWN_JOURNAL"},
		{"operator", base + "/commitments/identity/rotate", "", 409, "COMMITMENTS_NOT_IN_FORCE"},
		{"auditor", base + "/checkpoint-keys/trading/rotate", "", 403, "FORBIDDEN"},
		{"operator", base + "/checkpoint-keys/nothing/rotate", "", 404, "UNKNOWN_JOURNAL"},
		{"operator", base + "/checkpoint-keys/identity/rotate", "", 409, "CHECKPOINT_KEYS_NOT_IN_FORCE"},
		{"operator", base + "/checkpoint-keys/trading/rotate", `{"generation":2}`, 400, "VALIDATION_FAILED"},
		{"operator", at + "/disclose", `{"from":0,"to":1}`, 400, "VALIDATION_FAILED"},
		{"operator", at + "/disclose", `{"from":-1,"to":1,"recipient":"a"}`, 400, "VALIDATION_FAILED"},
		{"operator", at + "/disclose", `{"from":0,"to":4096000,"recipient":"a"}`, 400, "INVALID_TO"},
		{"operator", at + "/disclose", `{"from":0,"to":100000,"recipient":"a"}`, 400, "INVALID_TO"},
		{"operator", at + "/disclose", `{"from":2,"to":1,"recipient":"a"}`, 400, "INVALID_TO"},
		{"operator", at + "/rotate", `{"generation":2}`, 400, "VALIDATION_FAILED"},
	} {
		v.Send(c.who, "POST", c.path, c.body).Code(c.status, c.code)
	}
}
