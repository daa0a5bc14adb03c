package admin_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// twoOperators opens a venue with a second operator, a customer with money, and the newest rules.
func twoOperators(t *testing.T) *tradingtest.Venue {
	v := tradingtest.New(t)
	v.Send("operator", "POST", base+"/users", `{"username":"olga","password":"a good password","broker":"venue","scopes":["operator","read"]}`).Want(201)
	v.Nodes = []admin.Node{{Name: "http://a", Rules: map[string]int{"trading": 6, "onboarding": 6, "identity": 5}}}
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("operator", "POST", base+"/customers/A-1/deposits", `{"currency":"USDC","amount":"100000","reference_id":"first"}`).Want(201)
	return v
}

const proposals = base + "/four-eyes/trading/proposals"

// transferOf returns the body of a transfer, whose name follows from its amount.
func transferOf(amount string) string {
	return `{"currency":"USDC","amount":"` + amount + `","reference_id":"of-` + amount + `"}`
}

// withdraw asks for a withdrawal that needs two persons, and returns the proposal.
func withdraw(t *testing.T, v *tradingtest.Venue, amount string, headers ...string) *tradingtest.Reply {
	t.Helper()
	return v.Send("operator", "POST", base+"/customers/A-1/withdrawals", transferOf(amount), headers...).Want(202)
}

// TestFourEyes proposes withdrawals and other actions as one operator, and ends the proposals as another.
func TestFourEyes(t *testing.T) {
	v := twoOperators(t)
	want(t, v.Send("auditor", "GET", base+"/four-eyes/trading", "").Want(200), "rules", "[]", "proposal_seconds", "86400")
	policy := `{"rules":[{"action":"withdrawal.request","threshold":"1000.0"},{"action":"instrument.change"},{"action":"rules.activate"}],"proposal_seconds":3600}`
	v.Send("broker-a", "PUT", base+"/four-eyes/trading", policy).Code(403, "FORBIDDEN")
	v.Send("auditor", "PUT", base+"/four-eyes/trading", policy).Code(403, "FORBIDDEN")
	want(t, v.Send("operator", "PUT", base+"/four-eyes/trading", policy).Want(200), "journal", "trading", "proposal_seconds", "3600",
		"rules", `[{"action":"instrument.change","threshold":null},{"action":"rules.activate","threshold":null},{"action":"withdrawal.request","threshold":"1000"}]`)

	v.Send("operator", "POST", base+"/customers/A-1/withdrawals", transferOf("999")).Want(201)
	made := withdraw(t, v, "2500", "Idempotency-Key", "k")
	want(t, made, "action", "withdrawal.request", "status", "open", "proposed_by", "operator", "ended_by", "", "objects", `["transfers/A-1"]`,
		"content", `{"amount":"2500","currency":"USDC","customer_code":"A-1","reference_id":"of-2500"}`)
	if again := withdraw(t, v, "2500", "Idempotency-Key", "k"); again.Body != made.Body {
		t.Errorf("a repeated request gets %s, not %s", again.Body, made.Body)
	}
	one := proposals + "/" + made.Text("id")
	if listed := v.Send("auditor", "GET", proposals+"?status=open", "").Want(200); !ordered(listed.Body, made.Body, `"total":1`) {
		t.Errorf("the list is %s", listed.Body)
	}
	v.Send("auditor", "POST", one+"/confirm", "").Code(403, "FORBIDDEN")
	v.Send("operator", "POST", one+"/confirm", "").Code(403, "SELF_APPROVAL")
	v.Send("olga", "POST", one+"/withdraw", "").Code(403, "NOT_THE_PROPOSER")
	done := v.Send("olga", "POST", one+"/confirm", "", "Idempotency-Key", "c").Want(200)
	want(t, done, "status", "confirmed", "ended_by", "olga")
	if again := v.Send("olga", "POST", one+"/confirm", "", "Idempotency-Key", "c").Want(200); again.Body != done.Body {
		t.Errorf("a repeated confirmation gets %s, not %s", again.Body, done.Body)
	}
	v.Send("olga", "POST", one+"/confirm", "").Code(409, "PROPOSAL_NOT_OPEN")
	entries := v.Trading.Entries()
	if last := entries[len(entries)-1].Record; len(last.Events) != 2 || last.Events[0].EventType() != "withdrawal.requested" || last.Command.Actor.Sub != "olga" {
		t.Errorf("the record of the confirmation is %s", entries[len(entries)-1].Value)
	}

	stale, fresh := withdraw(t, v, "3000").Text("id"), withdraw(t, v, "4000").Text("id")
	v.Send("olga", "POST", proposals+"/"+fresh+"/confirm", "").Want(200)
	v.Send("olga", "POST", proposals+"/"+stale+"/confirm", "").Code(409, "EVIDENCE_CHANGED")
	want(t, v.Send("auditor", "GET", proposals+"/"+stale, "").Want(200), "status", "voided", "ended_by", "olga")

	halt := v.Send("operator", "PATCH", base+"/instruments/BTCUSDC_PERP", `{"status":"trade_halt"}`).Want(202).Text("id")
	rejected := v.Send("olga", "POST", proposals+"/"+halt+"/reject", `{"reason":"not at night"}`, "Idempotency-Key", "r").Want(200)
	want(t, rejected, "status", "rejected", "ended_reason", "not at night")
	if again := v.Send("olga", "POST", proposals+"/"+halt+"/reject", `{"reason":"not at night"}`, "Idempotency-Key", "r").Want(200); again.Body != rejected.Body {
		t.Errorf("a repeated rejection gets %s, not %s", again.Body, rejected.Body)
	}
	v.Send("olga", "POST", proposals+"/"+halt+"/reject", `{"reason":"another"}`, "Idempotency-Key", "r").Code(409, "IDEMPOTENCY_KEY_REUSED")
	v.Send("olga", "POST", proposals+"/"+halt+"/reject", `{"reason":"`+strings.Repeat("x", 2001)+`"}`).Code(400, "VALIDATION_FAILED")
	if listed := v.Send("auditor", "GET", proposals+"?status=rejected", "").Want(200); !ordered(listed.Body, rejected.Body) {
		t.Errorf("the list is %s", listed.Body)
	}
	want(t, v.Send("operator", "GET", base+"/instruments/BTCUSDC_PERP", "").Want(200), "status", "open")
	own := withdraw(t, v, "5000").Text("id")
	want(t, v.Send("operator", "POST", proposals+"/"+own+"/withdraw", "").Want(200), "status", "withdrawn", "ended_by", "operator")
	late := withdraw(t, v, "5000").Text("id") // the name is free again
	if again := withdraw(t, v, "5000"); again.Text("id") != late {
		t.Errorf("the same withdrawal is proposed twice: %s", again.Body)
	}
	v.Send("operator", "POST", base+"/customers/A-1/withdrawals", `{"currency":"USDC","amount":"5001","reference_id":"of-5000"}`).Code(409, "REFERENCE_ID_REUSED")
	v.Advance(scalar.Hour)
	v.Send("olga", "POST", proposals+"/"+late+"/confirm", "").Code(409, "PROPOSAL_EXPIRED")
	want(t, v.Send("auditor", "GET", proposals+"/"+late, "").Want(200), "status", "expired", "ended_by", "")

	off := v.Send("operator", "PUT", base+"/four-eyes/trading", `{"rules":[]}`).Want(202).Text("id")
	v.Send("operator", "POST", proposals+"/"+off+"/confirm", "").Code(403, "SELF_APPROVAL")
	v.Send("olga", "POST", proposals+"/"+off+"/confirm", "").Want(200)
	v.Send("operator", "POST", base+"/customers/A-1/withdrawals", transferOf("6000")).Want(201)

	v.Advance(-2 * scalar.Day) // the log is ahead of the clock now
	want(t, v.Send("auditor", "GET", proposals+"/"+late, "").Want(200), "status", "expired")
	if listed := v.Send("auditor", "GET", proposals+"?status=expired", "").Want(200); !ordered(listed.Body, late) {
		t.Errorf("with a clock behind the log, the list is %s", listed.Body)
	}
}

// TestReferenceOfOtherProposal asks for a deposit with the content of a proposed withdrawal.
func TestReferenceOfOtherProposal(t *testing.T) {
	v := twoOperators(t)
	v.Send("operator", "PUT", base+"/four-eyes/trading", `{"rules":[{"action":"deposit.make"},{"action":"withdrawal.request"}]}`).Want(200)
	made := withdraw(t, v, "2500")
	v.Send("operator", "POST", base+"/customers/A-1/deposits", transferOf("2500")).Code(409, "REFERENCE_ID_REUSED")
	if again := withdraw(t, v, "2500"); again.Body != made.Body {
		t.Errorf("a repeated request gets %s, not %s", again.Body, made.Body)
	}
}

const cases = base + "/four-eyes/onboarding/proposals/"

// governedDesk opens a desk with a second operator, the newest rules, and a policy of the onboarding journal.
func governedDesk(t *testing.T, actions ...string) *desk {
	d := &desk{t, twoOperators(t)}
	for rules := 2; rules <= 6; rules++ {
		d.Send("operator", "POST", base+"/rules/onboarding", fmt.Sprintf(`{"rules":%d}`, rules)) // those in force are refused
	}
	body := `{"rules":[{"action":"` + strings.Join(actions, `"},{"action":"`) + `"}]}`
	d.Send("operator", "PUT", base+"/four-eyes/onboarding", body).Want(200)
	return d
}

// TestReleaseOfTwo: a hold stays in the key store until two persons have released it, whatever one of them tries.
func TestReleaseOfTwo(t *testing.T) {
	d := governedDesk(t, "owner.release_hold")
	ref := d.owner("alpha", owner.PersonType, 1)
	one := base + "/persons/" + ref.ID.String()
	holds := func(want int) {
		t.Helper()
		if venues, err := d.Owners.Held(t.Context(), ref.String()); err != nil || len(venues) != want {
			t.Fatalf("the key store has %d holds, and not %d (%v)", len(venues), want, err)
		}
	}
	hold := func() { d.Send("operator", "POST", one+"/hold", `{"reason":"a court"}`).Want(200) }
	hold()
	made := d.Send("operator", "POST", one+"/release-hold", `{"reason":"over"}`, "Idempotency-Key", "k").Want(202)
	id := made.Text("id")
	holds(1)
	d.Send("operator", "POST", one+"/release-hold", `{"reason":"other"}`, "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	holds(1)
	d.Send("operator", "POST", cases+id+"/confirm", "").Code(403, "SELF_APPROVAL")
	want(t, d.Send("auditor", "GET", cases+id, "").Want(200), "content", `{"owner_id":"`+ref.ID.String()+`","owner_type":"person","reason":"over"}`)
	if listed := d.Send("auditor", "GET", base+"/four-eyes/onboarding/proposals", "").Want(200); strings.Contains(listed.Body, "over") {
		t.Errorf("the list has texts: %s", listed.Body)
	}
	d.Send("olga", "POST", cases+id+"/confirm", "").Want(200)
	holds(0)
	d.Send("olga", "POST", cases+id+"/confirm", "").Code(409, "PROPOSAL_NOT_OPEN")
	if _, err := d.Owners.Hold(t.Context(), ref.String()); err != nil { // as after a confirmation that the key store did not answer
		t.Fatal(err)
	}
	d.Send("operator", "POST", one+"/release-hold", `{"reason":"over"}`).Code(409, "OWNER_NOT_HELD")
	holds(1)
	d.Send("olga", "POST", cases+id+"/confirm", "").Want(200)
	holds(0)
	hold()
	d.Send("olga", "POST", cases+id+"/confirm", "").Code(409, "PROPOSAL_NOT_OPEN")
	holds(1)
}

// TestSealedReasons: the log has the reason for the end of a proposal about an owner sealed with the owner's key, and of another one
// with the venue's. Only the single proposal shows it, and not once the key is destroyed.
func TestSealedReasons(t *testing.T) {
	d := governedDesk(t, "owner.erase", "retention.set")
	ref := d.owner("alpha", owner.PersonType, 1)
	held := d.Send("operator", "POST", base+"/persons/"+ref.ID.String()+"/erase", `{"reason":"a request"}`).Want(202).Text("id")
	kept := d.Send("operator", "PUT", base+"/retention", `{"seconds":60}`).Want(202).Text("id")
	want(t, d.Send("olga", "POST", cases+held+"/reject", `{"reason":"a court still sits"}`).Want(200), "status", "rejected", "ended_reason", "a court still sits")
	want(t, d.Send("operator", "POST", cases+kept+"/withdraw", `{"reason":"by mistake"}`).Want(200), "status", "withdrawn", "ended_reason", "by mistake")
	want(t, d.Send("auditor", "GET", cases+held, "").Want(200), "ended_reason", "a court still sits")
	if listed := d.Send("auditor", "GET", base+"/four-eyes/onboarding/proposals", "").Want(200).Body; strings.Contains(listed, "court") || strings.Contains(listed, "mistake") {
		t.Errorf("the list has reasons: %s", listed)
	}
	for _, e := range d.Onboarding.Entries() {
		for _, event := range e.Record.Events {
			if reason := decide.ReasonOf(event); strings.Contains(reason, " ") {
				t.Errorf("the log has the reason %q", reason)
			}
		}
	}
	if err := d.Owners.Destroy(t.Context(), ref.String()); err != nil {
		t.Fatal(err)
	}
	want(t, d.Send("auditor", "GET", cases+held, "").Want(200), "status", "rejected", "ended_reason", "")
	want(t, d.Send("auditor", "GET", cases+kept, "").Want(200), "ended_reason", "by mistake")
}

// TestRefusedReleaseKeepsTheHold: without a policy too, a refused release leaves a hold that the log has.
func TestRefusedReleaseKeepsTheHold(t *testing.T) {
	d := newDesk(t)
	ref := d.owner("alpha", owner.PersonType, 1)
	one := base + "/persons/" + ref.ID.String()
	hold := func() { d.Send("operator", "POST", one+"/hold", `{"reason":"a court"}`).Want(200) }
	hold()
	d.Send("operator", "POST", one+"/release-hold", `{"reason":"over"}`, "Idempotency-Key", "k").Want(200)
	hold()
	d.Send("operator", "POST", one+"/release-hold", `{"reason":"other"}`, "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	if venues, err := d.Owners.Held(t.Context(), ref.String()); err != nil || len(venues) != 1 {
		t.Errorf("the key store has %d holds (%v)", len(venues), err)
	}
}

// TestDecisionShowsItsTexts: the second person sees the reasons of a decision, which the log and the list do not have in clear.
func TestDecisionShowsItsTexts(t *testing.T) {
	d := governedDesk(t, "entitlement_trigger.block")
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	ref := d.owner("alpha", owner.PersonType, 1)
	id := d.trigger(ref, "alpha", entitlement)
	made := d.Send("operator", "POST", base+"/entitlement_triggers/"+id+"/block", `{"code":"C","reason":"told them","internal_reason":"told us"}`).Want(202)
	shown := d.Send("auditor", "GET", cases+made.Text("id"), "").Want(200)
	want(t, shown, "content", `{"action":"block","code":"C","id":"`+id+`","internal_reason":"told us","reason":"told them"}`)
	if strings.Contains(made.Body, "told") {
		t.Errorf("the proposal has texts: %s", made.Body)
	}
	d.sealedOnly("told them", "told us")
	want(t, d.Send("olga", "POST", cases+made.Text("id")+"/confirm", "").Want(200), "status", "confirmed")
}

// TestFourEyesAtOnce confirms a proposal several times at once. It takes effect once.
func TestFourEyesAtOnce(t *testing.T) {
	v := twoOperators(t)
	v.Send("operator", "PUT", base+"/four-eyes/trading", `{"rules":[{"action":"withdrawal.request"}]}`).Want(200)
	one := proposals + "/" + withdraw(t, v, "10").Text("id") + "/confirm"
	var running sync.WaitGroup
	replies := make([]*tradingtest.Reply, 8)
	for i := range replies {
		running.Go(func() { replies[i] = v.Send("olga", "POST", one, "") })
	}
	running.Wait()
	done := 0
	for _, r := range replies {
		if r.Status == 200 {
			done++
			continue
		}
		r.Code(409, "PROPOSAL_NOT_OPEN")
	}
	requested := 0
	for _, e := range v.Trading.Entries() {
		for _, event := range e.Record.Events {
			if _, ok := event.(*decide.ProposalConfirmed); ok {
				requested++
			}
		}
	}
	if done != 1 || requested != 1 {
		t.Errorf("%d confirmations succeed, and %d are recorded", done, requested)
	}
}

// TestBadPolicies sends policies and names of proposals that do not exist.
func TestBadPolicies(t *testing.T) {
	v := twoOperators(t)
	for _, c := range []struct{ body, code, field string }{
		{`{}`, "VALIDATION_FAILED", "rules"},
		{`{"rules":[{}]}`, "VALIDATION_FAILED", "rules[0].action"},
		{`{"rules":[{"action":"order.place"}]}`, "INVALID_ACTION", "rules[0].action"},
		{`{"rules":[{"action":"owner.erase"}]}`, "INVALID_ACTION", "rules[0].action"},
		{`{"rules":[],"proposal_seconds":59}`, "VALIDATION_FAILED", "proposal_seconds"},
		{`{"rules":[{"action":"rules.activate"},{"action":"rules.activate"}]}`, "INVALID_ACTION", "rules[1].action"},
		{`{"rules":[{"action":"rules.activate","threshold":"5"}]}`, "INVALID_THRESHOLD", "rules[0].threshold"},
		{`{"rules":[{"action":"rules.activate"},{"action":"withdrawal.request","threshold":"-1"}]}`, "INVALID_THRESHOLD", "rules[1].threshold"},
		{`{"rules":[{"action":"withdrawal.request","threshold":"many"}]}`, "VALIDATION_FAILED", "rules[0].threshold"},
		{`{"rules":[{"action":"withdrawal.request","at":"1"}],"proposal_seconds":60}`, "VALIDATION_FAILED", "rules[0].at"},
	} {
		r := v.Send("operator", "PUT", base+"/four-eyes/trading", c.body)
		r.Code(400, c.code)
		if !strings.Contains(r.Body, `"field":"`+c.field+`"`) {
			t.Errorf("%s: %s, without the field %s", c.body, r.Body, c.field)
		}
	}
	v.Send("operator", "PUT", base+"/four-eyes/nothing", `{"rules":[]}`).Code(404, "UNKNOWN_JOURNAL")
	v.Send("operator", "GET", base+"/four-eyes/nothing", "").Code(404, "UNKNOWN_JOURNAL")
	for _, verb := range []string{"confirm", "reject", "withdraw"} {
		v.Send("operator", "POST", base+"/four-eyes/nothing/proposals/6a0e8f5b-1f0b-8d0e-9b0f-3c1d5f2e7a90/"+verb, "").Code(404, "UNKNOWN_JOURNAL")
	}
	for _, id := range []string{"nothing", "6a0e8f5b-1f0b-8d0e-9b0f-3c1d5f2e7a90"} {
		v.Send("operator", "GET", proposals+"/"+id, "").Code(404, "UNKNOWN_PROPOSAL")
		for _, verb := range []string{"confirm", "reject", "withdraw"} {
			v.Send("operator", "POST", proposals+"/"+id+"/"+verb, "").Code(404, "UNKNOWN_PROPOSAL")
		}
	}
	v.Send("operator", "GET", proposals+"?status=done", "").Code(400, "VALIDATION_FAILED")
}
