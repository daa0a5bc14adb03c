package login

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// TestAChangeOfAUserSaysWhatItsTokensMayDo compares what a change leaves of a token with what the next verification
// of the token does.
func TestAChangeOfAUserSaysWhatItsTokensMayDo(t *testing.T) {
	inactive := false
	for name, change := range map[string]func(*desk) *identity.ChangeUser{
		"nothing":      func(*desk) *identity.ChangeUser { return &identity.ChangeUser{} },
		"the scopes":   func(*desk) *identity.ChangeUser { return &identity.ChangeUser{Scopes: []string{identity.ScopeRead}} },
		"the activity": func(*desk) *identity.ChangeUser { return &identity.ChangeUser{IsActive: &inactive} },
		"the password": func(d *desk) *identity.ChangeUser { return &identity.ChangeUser{PasswordHash: d.seal("user", "new")} },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.addKey()
			token := d.token("user")
			before, err := d.tokens.Verify(token, "")
			if err != nil {
				t.Fatal(err)
			}
			var got []access.Change
			Changes{d.memory}.Listen(func(c access.Change) { got = append(got, c) })
			d.pass(time.Minute)
			c := change(d)
			c.Username = "user"
			d.do(identity.CommandChangeUser, c)
			if len(got) != 1 {
				t.Fatalf("%d changes, want 1", len(got))
			}
			left := got[0].Leaves(before)
			want, err := d.tokens.Verify(token, "")
			if (left == nil) != (err != nil) {
				t.Fatalf("the change leaves %v, the verification says %v", left, err)
			}
			if left != nil && len(left.Scopes) != len(want.Scopes) {
				t.Errorf("the change leaves the scopes %v, the verification %v", left.Scopes, want.Scopes)
			}
		})
	}
}
