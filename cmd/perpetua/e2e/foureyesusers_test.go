package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestFourEyesOfUsers proposes the password of an operator as another one. The operator can log in with it only when a third one
// has confirmed it, at a venue that is killed in between. The log does not have the password, and the verifiers agree with it.
func TestFourEyesOfUsers(t *testing.T) {
	v := startVenue(t, "--demo=false")
	operators := map[string]string{"olga": "password of olga", "sam": "password of sam"}
	for name, password := range operators {
		v.must(201, "operator", http.MethodPost, "/admin/v1/users", `{"username":"`+name+`","password":"`+password+`","broker":"venue","scopes":["operator","read"]}`)
	}
	logIn := func() {
		for name, password := range operators {
			v.tokens[name] = v.login(name, password)
		}
	}
	logIn()
	tries := func(password string, want int) {
		t.Helper()
		form := url.Values{"username": {"olga"}, "password": {password}}.Encode()
		v.must(want, "", http.MethodPost, "/auth/jwt/login", form, "Content-Type", "application/x-www-form-urlencoded")
	}
	v.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/identity", `{"rules":[{"action":"user.change"},{"action":"user.register"}]}`)
	const olga = "/admin/v1/users/olga"
	one := "/admin/v1/four-eyes/identity/proposals/" + v.must(202, "operator", http.MethodPatch, olga, `{"password":"of the evil one"}`).get("id")
	v.must(202, "operator", http.MethodPost, "/admin/v1/users", `{"username":"puppet","password":"of the evil one","broker":"venue","scopes":["operator"]}`)
	tries("of the evil one", 400)
	tries(operators["olga"], 200)
	v.kill()
	v.start()
	logIn()
	if a := v.must(403, "operator", http.MethodPost, one+"/confirm", nil); a.code() != "SELF_APPROVAL" {
		t.Errorf("the operator confirms its own proposal: %s", a.Body)
	}
	tries("of the evil one", 400)
	if a := v.must(200, "sam", http.MethodPost, one+"/confirm", nil); a.get("status") != "confirmed" {
		t.Errorf("the confirmed proposal is %s", a.Body)
	}
	tries(operators["olga"], 400)
	tries("of the evil one", 200)
	v.must(401, "olga", http.MethodGet, one, nil) // by a token of the old password
	operators["olga"] = "of the evil one"
	logIn()
	v.must(200, "olga", http.MethodPatch, olga, `{"password":"chosen by olga"}`)
	tries("chosen by olga", 200)
	if out, err := v.command("audit", "verify", "--rules").CombinedOutput(); err != nil {
		t.Errorf("the log does not verify: %v\n%s", err, out)
	}
	if out, err := v.command("log", "--journal", "identity").CombinedOutput(); err != nil || strings.Contains(string(out), "of the evil one") || !strings.Contains(string(out), "proposal.made") {
		t.Errorf("the log has a password (%v)", err)
	}
}
