package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

const people = base + "/four-eyes/identity/proposals/"

// governUsers gives a venue of two operators a policy of the identity journal.
func governUsers(t *testing.T, v *tradingtest.Venue, actions ...string) {
	t.Helper()
	for rules := 2; rules <= 4; rules++ {
		v.Send("operator", "POST", base+"/rules/identity", fmt.Sprintf(`{"rules":%d}`, rules)).Want(200)
	}
	v.Send("operator", "PUT", base+"/four-eyes/identity", `{"rules":[{"action":"`+strings.Join(actions, `"},{"action":"`)+`"}]}`).Want(200)
}

// passwordOf returns the sealed password of a user.
func passwordOf(v *tradingtest.Venue, name string) string {
	entries := v.Identity.Entries()
	sealed := ""
	for _, e := range entries {
		for _, event := range e.Record.Events {
			switch event := event.(type) {
			case *identity.UserRegistered:
				if event.Username == name {
					sealed = string(event.PasswordHash)
				}
			case *identity.UserChanged:
				if event.Username == name {
					sealed = string(event.PasswordHash)
				}
			}
		}
	}
	return sealed
}

// TestFourEyesOfUsers: under a policy of the identity journal no operator sets the password of another one alone, and no answer has
// a secret.
func TestFourEyesOfUsers(t *testing.T) {
	v := twoOperators(t)
	v.Send("operator", "PUT", base+"/four-eyes/identity", `{"rules":[{"action":"user.change"}]}`).Code(409, "FOUR_EYES_NOT_IN_FORCE")
	want(t, v.Send("auditor", "GET", base+"/four-eyes/identity", "").Want(200), "rules", "[]", "note", "")
	governUsers(t, v, "user.change", "user.register", "signing_key.add", "signing_key.retire", "api_key.limit", "rules.activate")
	const olga = base + "/users/olga"
	before := passwordOf(v, "olga")
	made := v.Send("operator", "PATCH", olga, `{"password":"an evil password"}`, "Idempotency-Key", "k").Want(202)
	want(t, made, "action", "user.change", "journal", "identity", "status", "open", "objects", `["user/olga"]`, "content", `{"sets_password":true,"username":"olga"}`)
	if again := v.Send("operator", "PATCH", olga, `{"password":"an evil password"}`, "Idempotency-Key", "k").Want(202); again.Body != made.Body {
		t.Errorf("a repeated request gets %s, not %s", again.Body, made.Body)
	}
	v.Send("operator", "PATCH", olga, `{"password":"another password"}`, "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	one := people + made.Text("id")
	v.Send("operator", "POST", one+"/confirm", "").Code(403, "SELF_APPROVAL")
	v.Send("broker-a", "POST", one+"/confirm", "").Code(403, "FORBIDDEN")
	if now := passwordOf(v, "olga"); now != before {
		t.Errorf("the password is %q before the confirmation", now)
	}
	want(t, v.Send("auditor", "GET", one, "").Want(200), "content", `{"sets_password":true,"username":"olga"}`)
	v.Send("olga", "POST", one+"/confirm", "").Want(200)
	if now := passwordOf(v, "olga"); now == before {
		t.Error("the password is the old one after the confirmation")
	}

	added := v.Send("operator", "POST", base+"/signing-keys", "").Want(202)
	if listed := v.Send("auditor", "GET", base+"/four-eyes/identity/proposals", "").Want(200).Body; strings.Contains(listed, "private") || strings.Contains(listed, "password_hash") {
		t.Errorf("the list has secrets: %s", listed)
	}
	v.Send("olga", "POST", people+added.Text("id")+"/confirm", "").Want(200)

	user := v.Send("operator", "POST", base+"/users", `{"username":"sam","password":"a good password","broker":"venue","scopes":["operator"]}`).Want(202)
	v.Send("operator", "POST", base+"/users", `{"username":"olga","password":"a good password","broker":"venue","scopes":["operator"]}`).Code(409, "USERNAME_TAKEN")
	want(t, user, "content", `{"broker":"venue","is_active":true,"is_verified":true,"scopes":["operator"],"sets_password":true,"username":"sam"}`)
	v.Send("olga", "POST", people+user.Text("id")+"/confirm", "").Want(200)
	v.Send("operator", "PATCH", base+"/users/operator", `{"password":"a good password"}`).Want(200)
	v.Send("operator", "PATCH", base+"/users/operator", `{"scopes":["operator","read","trade"]}`).Want(202)
	v.Send("operator", "PATCH", base+"/users/operator", `{"scopes":["operator"]}`).Want(200)

	gone := v.Send("olga", "PATCH", base+"/users/sam", `{"is_active":false}`).Want(202).Text("id")
	v.Send("olga", "PATCH", olga, `{"scopes":["read"]}`).Want(200)
	v.Send("operator", "POST", people+gone+"/confirm", "").Code(409, "PROPOSER_NOT_OPERATOR")
	v.Send("operator", "POST", people+gone+"/reject", "").Want(200)
}

// TestWeakPolicies: a policy says so if one operator could be both persons.
func TestWeakPolicies(t *testing.T) {
	v := twoOperators(t)
	note := func(journal string) string {
		return v.Send("auditor", "GET", base+"/four-eyes/"+journal, "").Want(200).Text("note")
	}
	set := func(journal, rules string) *tradingtest.Reply {
		return v.Send("operator", "PUT", base+"/four-eyes/"+journal, `{"rules":[`+rules+`]}`)
	}
	if got := note("trading"); got != "" {
		t.Errorf("without a policy: %s", got)
	}
	set("trading", `{"action":"instrument.change"}`).Want(200)
	if got := note("trading"); !strings.Contains(got, "identity") {
		t.Errorf("without a policy of identity: %q", got)
	}
	governUsers(t, v, "user.change")
	if a, b := note("trading"), note("identity"); a == "" || a != b {
		t.Errorf("with half a policy of identity: %q and %q", a, b)
	}
	id := set("identity", `{"action":"user.change"},{"action":"user.register"}`).Want(202).Text("id")
	v.Send("olga", "POST", people+id+"/confirm", "").Want(200)
	if a, b := note("trading"), note("identity"); a != "" || b != "" {
		t.Errorf("with a policy of identity: %q and %q", a, b)
	}
}

// TestCheckpointKeyOfTwo: a proposed rotation names the key that the key store has, and takes effect once.
func TestCheckpointKeyOfTwo(t *testing.T) {
	v := twoOperators(t)
	governUsers(t, v, "checkpoint_key.rotate")
	const rotate = base + "/checkpoint-keys/identity/rotate"
	one, two := v.Send("operator", "POST", rotate, "").Want(202).Text("id"), v.Send("olga", "POST", rotate, "").Want(202).Text("id")
	v.Send("operator", "POST", people+one+"/confirm", "").Code(403, "SELF_APPROVAL")
	v.LostKeys = 7
	v.Send("olga", "POST", people+one+"/confirm", "").Code(409, "ANOTHER_CHECKPOINT_KEY")
	v.LostKeys = 0
	v.Send("olga", "POST", people+one+"/confirm", "").Want(200)
	v.Send("operator", "POST", people+two+"/confirm", "").Code(409, "EVIDENCE_CHANGED")
	v.Send("operator", "POST", base+"/checkpoint-keys/trading/rotate", "").Want(200)
}
