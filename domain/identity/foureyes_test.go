package identity_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

var (
	olga  = decide.Actor{Sub: "olga", Broker: "venue"}
	third = decide.Actor{Sub: "third", Broker: "venue"}
)

// send decides a command and returns the types of its events, or the code of its refusal.
func (l *log) send(by decide.Actor, p decide.Payload) string {
	l.t.Helper()
	n := len(l.records)
	got := l.do(by, p.CommandType(), "", p)
	if len(l.records) == n {
		return got
	}
	var kinds []string
	for _, e := range l.records[n].events {
		kinds = append(kinds, e.kind)
	}
	return strings.Join(kinds, " ")
}

// governedUsers returns a log with three operators, the newest rules, and a policy with these actions.
func governedUsers(t testing.TB, actions ...string) *log {
	l := seeded(t)
	for _, name := range []string{"olga", "third"} {
		l.send(system, user(name, "venue", identity.ScopeOperator))
	}
	for rules := 2; rules <= identity.Rules().Newest(); rules++ {
		l.send(operator, &decide.ActivateRules{Rules: rules})
	}
	policy := decide.Policy{ProposalSeconds: 3600}
	for _, a := range actions {
		policy.Rules = append(policy.Rules, decide.PolicyRule{Action: a})
	}
	if got := l.send(operator, &decide.SetPolicy{Policy: policy}); got != "four_eyes.set" {
		t.Fatal(got)
	}
	return l
}

// confirm confirms the newest proposal.
func (l *log) confirm(by decide.Actor) string {
	l.t.Helper()
	all := l.state.Proposals()
	return l.send(by, &decide.ConfirmProposal{ID: all[len(all)-1].ID})
}

// password returns a change of a user's password.
func password(name, sealed string) *identity.ChangeUser {
	return &identity.ChangeUser{Username: name, PasswordHash: identity.Sealed(sealed)}
}

// allActions are the actions that a policy of the journal may name.
func allActions() (names []string) {
	for _, a := range identity.NewState().Governed().Actions() {
		names = append(names, a.Name)
	}
	return names
}

// TestUsersOfTwo: under a policy nobody alone creates a user or becomes another one. What users do for themselves needs one
// person, unless it widens their rights.
func TestUsersOfTwo(t *testing.T) {
	yes, no, customer, none := true, false, "c1", ""
	rotation := &decide.RotateCheckpointKey{Generation: 2, Previous: "log+1+a", Key: "log+2+b"}
	limit := &identity.RateLimit{PerSecond: 5, Burst: 5}
	for _, tt := range []struct {
		what string
		by   decide.Actor
		p    decide.Payload
		want string
	}{
		{"a new user", operator, user("new", "alpha", identity.ScopeRead), "proposal.made"},
		{"a user that exists", operator, user("olga", "venue", identity.ScopeRead), "USERNAME_TAKEN"},
		{"another's password", operator, password("olga", "x"), "proposal.made"},
		{"a broker's password", operator, password("broker-a", "x"), "proposal.made"},
		{"a password that is too long", operator, password("olga", strings.Repeat("x", 5000)), "INVALID_PASSWORD"},
		{"nobody's password", operator, password("nobody", "x"), "USER_NOT_FOUND"},
		{"another's scopes", operator, &identity.ChangeUser{Username: "olga", Scopes: []string{"read"}}, "proposal.made"},
		{"another's status", operator, &identity.ChangeUser{Username: "olga", IsActive: &no}, "proposal.made"},
		{"another's customer", operator, &identity.ChangeUser{Username: "broker-a", CustomerCode: &customer}, "proposal.made"},
		{"another's limit", operator, &identity.ChangeUser{Username: "broker-a", RateLimit: limit}, "proposal.made"},
		{"by one who is no operator", broker, password("olga", "x"), "FORBIDDEN"},
		{"by the system", system, password("olga", "x"), "user.changed"},
		{"the own password", operator, password("operator", "x"), "user.changed"},
		{"fewer scopes", operator, &identity.ChangeUser{Username: "operator", Scopes: []string{"operator"}}, "user.changed"},
		{"other scopes", operator, &identity.ChangeUser{Username: "operator", Scopes: []string{"operator", "trade"}}, "proposal.made"},
		{"the own password with another scope", operator, &identity.ChangeUser{Username: "operator", PasswordHash: identity.Sealed("x"), Scopes: []string{"operator", "trade"}}, "proposal.made"},
		{"the own end", operator, &identity.ChangeUser{Username: "operator", IsActive: &no, IsVerified: &no}, "user.changed"},
		{"what one is", operator, &identity.ChangeUser{Username: "operator", IsActive: &yes, IsVerified: &yes, CustomerCode: &none, ClearRateLimit: true}, "user.changed"},
		{"a customer of one's own", operator, &identity.ChangeUser{Username: "operator", CustomerCode: &customer}, "user.changed"},
		{"a limit of one's own", operator, &identity.ChangeUser{Username: "operator", RateLimit: limit}, "proposal.made"},
		{"an API key", operator, apiKey("mine", identity.ScopeOperator), "api_key.created"},
		{"a broker", operator, &identity.RegisterBroker{Broker: "beta", Name: "Beta"}, "broker.registered"},
		{"a signing key", operator, key("k2"), "proposal.made"},
		{"the end of the last signing key", operator, &identity.RetireSigningKey{KID: "k1"}, "LAST_SIGNING_KEY"},
		{"an invalid checkpoint key", operator, rotation, "INVALID_KEY"},
		{"rules that nobody knows", operator, &decide.ActivateRules{Rules: identity.Rules().Newest() + 1}, "RULES_NOT_SUPPORTED"},
		{"the policy", operator, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 60}}, "proposal.made"},
		{"a policy with an action of another journal", operator, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 60, Rules: []decide.PolicyRule{{Action: "due.put_back"}}}}, "INVALID_ACTION"},
	} {
		l := governedUsers(t, allActions()...)
		if got := l.send(tt.by, tt.p); got != tt.want {
			t.Errorf("%s: %s, and not %s", tt.what, got, tt.want)
		}
	}
}

// TestNarrowUsersWiden: for a user with few rights, each of them is more.
func TestNarrowUsersWiden(t *testing.T) {
	yes, none, other, limit := true, "", "c2", &identity.RateLimit{PerSecond: 1, Burst: 1}
	narrow := user("narrow", "venue", identity.ScopeOperator)
	narrow.CustomerCode, narrow.IsVerified, narrow.RateLimit = "c1", false, limit
	self := decide.Actor{Sub: "narrow", Broker: "venue", Customer: "c1"}
	for name, tt := range map[string]struct {
		change identity.ChangeUser
		want   string
	}{
		"verified":       {identity.ChangeUser{IsVerified: &yes}, "proposal.made"},
		"unconfined":     {identity.ChangeUser{CustomerCode: &none}, "proposal.made"},
		"other customer": {identity.ChangeUser{CustomerCode: &other}, "proposal.made"},
		"no limit":       {identity.ChangeUser{ClearRateLimit: true}, "proposal.made"},
		"another limit":  {identity.ChangeUser{RateLimit: &identity.RateLimit{PerSecond: 2, Burst: 1}}, "proposal.made"},
		"the same limit": {identity.ChangeUser{RateLimit: limit}, "user.changed"},
	} {
		l := governedUsers(t, "user.change")
		l.send(system, narrow)
		tt.change.Username = "narrow"
		if got := l.send(self, &tt.change); got != tt.want {
			t.Errorf("%s: %s, and not %s", name, got, tt.want)
		}
	}
}

// TestPasswordOfTwo follows proposals of passwords through confirmation, evidence, and expiry.
func TestPasswordOfTwo(t *testing.T) {
	l := governedUsers(t, allActions()...)
	hash := func() string { u, _ := l.state.User("olga"); return string(u.PasswordHash) }
	no := false
	for n, tt := range []struct {
		what string
		got  func() string
		want string
	}{
		{"a password is proposed", func() string { return l.send(operator, password("olga", "first")) }, "proposal.made"},
		{"and not set", hash, "ciphertext"},
		{"not by oneself", func() string { return l.confirm(operator) }, "SELF_APPROVAL"},
		{"not by a broker", func() string { return l.confirm(broker) }, "FORBIDDEN"},
		{"by a second person", func() string { l.now += scalar.Second; return l.confirm(third) }, "user.changed proposal.confirmed"},
		{"it is set", hash, "first"},
		{"once", func() string { return l.confirm(third) }, "PROPOSAL_NOT_OPEN"},
		{"another one", func() string { return l.send(operator, password("olga", "second")) }, "proposal.made"},
		{"the user's own", func() string { return l.send(olga, password("olga", "own")) }, "user.changed"},
		{"makes it void", func() string { return l.confirm(third) }, "proposal.voided"},
		{"so it stays", hash, "own"},
		{"a third one", func() string { return l.send(operator, password("olga", "third")) }, "proposal.made"},
		{"an API key is used and another user changes", func() string { return l.send(third, password("third", "x")) }, "user.changed"},
		{"which is no evidence", func() string { return l.confirm(third) }, "user.changed proposal.confirmed"},
		{"a fourth one", func() string { return l.send(operator, password("olga", "fourth")) }, "proposal.made"},
		{"its proposer leaves", func() string { return l.send(operator, &identity.ChangeUser{Username: "operator", IsActive: &no}) }, "user.changed"},
		{"and can't have it confirmed", func() string { return l.confirm(third) }, "PROPOSER_NOT_OPERATOR"},
		{"but rejected", func() string {
			all := l.state.Proposals()
			return l.send(third, &decide.RejectProposal{ID: all[len(all)-1].ID})
		}, "proposal.rejected"},
		{"a fifth one", func() string { return l.send(olga, password("broker-a", "fifth")) }, "proposal.made"},
		{"expires", func() string { l.now += scalar.Hour; return l.confirm(third) }, "PROPOSAL_EXPIRED"},
		{"the policy's end", func() string {
			return l.send(olga, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 60}})
		}, "proposal.made"},
		{"by two", func() string { return l.confirm(third) }, "four_eyes.set proposal.confirmed"},
		{"as before", func() string { return l.send(third, password("olga", "alone")) }, "user.changed"},
	} {
		if got := tt.got(); got != tt.want {
			t.Fatalf("%d: %s: %s, and not %s", n, tt.what, got, tt.want)
		}
	}
}

// TestEvidenceOfKeys: proposals about keys are void after a change of the same keys.
func TestEvidenceOfKeys(t *testing.T) {
	l := governedUsers(t, allActions()...)
	id := func() scalar.ID { return l.keys("broker-a")[0].ID }
	l.send(broker, apiKey("secret", identity.ScopeTrade))
	for n, tt := range []struct {
		p           decide.Payload
		first, then string
	}{
		{key("k2"), "signing_key.added proposal.confirmed", "proposal.voided"},
		{&identity.RetireSigningKey{KID: "k1"}, "signing_key.retired proposal.confirmed", "proposal.voided"},
		{&identity.LimitAPIKey{Username: "broker-a", ID: id(), RateLimit: &identity.RateLimit{PerSecond: 1, Burst: 1}}, "api_key.limited proposal.confirmed", "proposal.voided"},
		{user("new", "alpha", identity.ScopeRead), "user.registered proposal.confirmed", "proposal.voided"},
	} {
		for range 2 {
			if got := l.send(operator, tt.p); got != "proposal.made" {
				t.Fatalf("%d: %s", n, got)
			}
		}
		all := l.state.Proposals()
		first, second := all[len(all)-2].ID, all[len(all)-1].ID
		if got := l.send(olga, &decide.ConfirmProposal{ID: first}); got != tt.first {
			t.Errorf("%d: %s, and not %s", n, got, tt.first)
		}
		if got := l.send(olga, &decide.ConfirmProposal{ID: second}); got != tt.then {
			t.Errorf("%d: then %s, and not %s", n, got, tt.then)
		}
	}
	l.send(operator, &identity.LimitAPIKey{Username: "broker-a", ID: id()})
	l.send(broker, &identity.RevokeAPIKey{ID: id()})
	if got := l.confirm(olga); got != "proposal.voided" {
		t.Errorf("after the end of the key: %s", got)
	}
}

// TestProtectsUsers: a policy protects users if nobody alone can create or become one.
func TestProtectsUsers(t *testing.T) {
	for actions, want := range map[string]bool{"": false, "user.register": false, "user.change": false, "rules.activate": false, "user.change user.register": true} {
		if l := governedUsers(t, strings.Fields(actions)...); l.state.ProtectsUsers() != want {
			t.Errorf("a policy of %q: %t", actions, !want)
		}
	}
}

// TestOldRulesHaveNoPolicies: a journal by earlier rules refuses policies, so that earlier builds can read it.
func TestOldRulesHaveNoPolicies(t *testing.T) {
	l := seeded(t)
	for rules := 2; rules <= 4; rules++ {
		for _, p := range []decide.Payload{&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 60}}, &decide.ConfirmProposal{}, &decide.RejectProposal{}, &decide.WithdrawProposal{}} {
			if got := l.send(operator, p); got != "FOUR_EYES_NOT_IN_FORCE" {
				t.Errorf("by rules %d, %s: %s", rules-1, p.CommandType(), got)
			}
		}
		l.send(operator, &decide.ActivateRules{Rules: rules})
	}
	if got := l.send(operator, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 60}}); got != "four_eyes.set" {
		t.Errorf("by rules 4: %s", got)
	}
}

// TestReasonsOfEnds: from rules 5 on, a rejection and a withdrawal may have a reason, which the proposal keeps. Earlier rules refuse
// it, so that earlier builds can read their journals.
func TestReasonsOfEnds(t *testing.T) {
	l := seeded(t)
	for rules := 2; rules <= 4; rules++ {
		l.send(operator, &decide.ActivateRules{Rules: rules})
	}
	l.send(operator, user("olga", "venue", identity.ScopeOperator))
	l.send(operator, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600, Rules: []decide.PolicyRule{{Action: identity.CommandChangeUser}}}})
	propose := func() scalar.ID {
		if got := l.send(operator, password("broker-a", "new")); got != "proposal.made" {
			t.Fatal(got)
		}
		all := l.state.Proposals()
		return all[len(all)-1].ID
	}
	first, second, third := propose(), propose(), propose()
	reject, withdraw := &decide.RejectProposal{ID: first, Reason: "he left \u2013 ask HR"}, &decide.WithdrawProposal{ID: second, Reason: "a mistake"}
	for _, tt := range []struct {
		name string
		by   decide.Actor
		p    decide.Payload
		want string
	}{
		{"a rejection by rules 4", olga, reject, "REASONS_NOT_IN_FORCE"},
		{"a withdrawal by rules 4", operator, withdraw, "REASONS_NOT_IN_FORCE"},
		{"newer rules", operator, &decide.ActivateRules{Rules: 5}, "rules.activated"},
		{"too long", olga, &decide.RejectProposal{ID: first, Reason: strings.Repeat("x", decide.MaxProposalReason+1)}, "INVALID_REASON"},
		{"no text", operator, &decide.WithdrawProposal{ID: second, Reason: "\xff"}, "INVALID_REASON"},
		{"one's own", operator, reject, "SELF_APPROVAL"},
		{"a rejection", olga, reject, "proposal.rejected"},
		{"another one's", olga, withdraw, "NOT_THE_PROPOSER"},
		{"a withdrawal", operator, withdraw, "proposal.withdrawn"},
		{"without a reason", olga, &decide.RejectProposal{ID: third}, "proposal.rejected"},
	} {
		if got := l.send(tt.by, tt.p); got != tt.want {
			t.Fatalf("%s: %s", tt.name, got)
		}
	}
	for n, want := range []string{reject.Reason, withdraw.Reason, ""} {
		for _, s := range []*identity.State{l.state, l.replay(), reread(t, l.state)} {
			if p := s.Proposals()[n]; p.Reason != want || p.EndedBy == "" {
				t.Errorf("proposal %d ended for %q", n, p.Reason)
			}
		}
	}
}

// TestNothingOfOnePerson: under a policy of all actions, whatever three operators try, each event of these actions is in a record
// that two of them made, or one by which a user changed itself without another right. Saved states go on alike.
func TestNothingOfOnePerson(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := governedUsers(t, allActions()...)
		from := len(l.records)
		for range rapid.IntRange(1, 60).Draw(r, "commands") {
			l.now += scalar.Time(rapid.Int64Range(0, int64(20*scalar.Minute)).Draw(r, "passes"))
			by := rapid.SampledFrom([]decide.Actor{operator, olga, third}).Draw(r, "by")
			l.send(by, l.drawGoverned(r))
			if rapid.IntRange(0, 9).Draw(r, "save") == 0 {
				l.state = reread(r, l.state)
			}
		}
		known := map[string][]string{"operator": {"operator", "read"}, "olga": {"operator"}, "third": {"operator"}}
		for _, x := range l.records[from:] {
			l.checkTwo(r, x, known)
		}
		if again := l.replay(); !bytes.Equal(identity.Codec().Append(nil, again), identity.Codec().Append(nil, l.state)) {
			r.Fatal("the replayed state differs")
		}
	})
}

// drawGoverned draws a command of an operator.
func (l *log) drawGoverned(r *rapid.T) decide.Payload {
	name := rapid.SampledFrom([]string{"operator", "olga", "third", "u1"}).Draw(r, "user")
	if all := l.state.Proposals(); len(all) > 0 && rapid.Bool().Draw(r, "about a proposal") {
		id := all[rapid.IntRange(0, len(all)-1).Draw(r, "proposal")].ID
		switch rapid.IntRange(0, 5).Draw(r, "end") {
		case 0:
			return &decide.RejectProposal{ID: id, Reason: rapid.SampledFrom([]string{"", "not now"}).Draw(r, "reason")}
		case 1:
			return &decide.WithdrawProposal{ID: id, Reason: rapid.SampledFrom([]string{"", "a mistake"}).Draw(r, "reason")}
		}
		return &decide.ConfirmProposal{ID: id}
	}
	switch rapid.IntRange(0, 5).Draw(r, "command") {
	case 0:
		return user(name, "venue", identity.ScopeOperator)
	case 1:
		return key(rapid.SampledFrom([]string{"k1", "k2", "k3"}).Draw(r, "kid"))
	case 2:
		return &identity.RetireSigningKey{KID: rapid.SampledFrom([]string{"k1", "k2", "k3"}).Draw(r, "kid")}
	case 3:
		return &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: rapid.IntRange(600, 3600).Draw(r, "seconds"), Rules: l.state.Policy().Rules}}
	case 4:
		return password(name, rapid.StringN(1, 8, 8).Draw(r, "hash"))
	}
	scopes := rapid.SliceOfNDistinct(rapid.SampledFrom(identity.Scopes()), 1, 3, rapid.ID).Draw(r, "scopes")
	return &identity.ChangeUser{Username: name, Scopes: scopes}
}

// checkTwo fails if a record has an event of a covered action without two persons. known has the scopes of users before.
func (l *log) checkTwo(r *rapid.T, x record, known map[string][]string) {
	registry := identity.Rules().Registry()
	var events []decide.Event
	for _, e := range x.events {
		event, err := registry.Decode(e.kind, e.version, e.data)
		if err != nil {
			r.Fatal(err)
		}
		events = append(events, event)
	}
	confirmed, two := decide.EventOf[*decide.ProposalConfirmed](&decide.Evidence{Events: events})
	two = two && confirmed.By != confirmed.ProposedBy && confirmed.By == x.command.Actor.Sub
	for _, e := range events {
		alone := true
		switch e := e.(type) {
		case *identity.UserChanged:
			alone = e.Username == x.command.Actor.Sub && !slices.ContainsFunc(e.Scopes, func(s string) bool { return !slices.Contains(known[e.Username], s) })
			known[e.Username] = e.Scopes
		case *identity.UserRegistered:
			alone, known[e.Username] = false, e.Scopes
		case *identity.SigningKeyAdded, *identity.SigningKeyRetired, *decide.PolicySet:
			alone = false
		}
		if !alone && !two {
			r.Fatalf("%s alone: %s", x.command.Actor.Sub, e.EventType())
		}
	}
}
