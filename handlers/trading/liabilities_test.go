package trading_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

// stated is a venue with nodes that state its liabilities, after the first instant of funding. instant lets the next one pass.
func stated(t *testing.T, nodes int) (v *tradingtest.Venue, instant func() form.Published) {
	t.Helper()
	v = funded(t)
	var followers []*liabilities.Follower
	for range nodes {
		followers = append(followers, v.StateLiabilities())
	}
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "65000")).Want(201)
	instant = func() form.Published {
		t.Helper()
		next, err := scalar.ParseTime(v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).List()[0].Text("next_funding_time"))
		if err != nil {
			t.Fatal(err)
		}
		now, err := scalar.ParseTime(v.Send("", "GET", "/v1/time", "").Want(200).Text("time"))
		if err != nil {
			t.Fatal(err)
		}
		v.Advance(next - now - scalar.Minute)
		v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"64900"}`).Want(200)
		v.Advance(scalar.Minute)
		v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"64900"}`).Want(200)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			var page struct {
				Records []form.Published `json:"records"`
			}
			v.Send("", "GET", "/v1/liabilities?page_size=1", "").Want(200).JSON(&page)
			done := len(page.Records) == 1 && page.Records[0].Timestamp == next
			for _, f := range followers {
				done = done && f.Last() == page.Records[0].Position
			}
			if done {
				return page.Records[0]
			}
		}
		t.Fatal("no statement was recorded")
		return form.Published{}
	}
	return v, instant
}

// TestLiabilities: two nodes state one root an instant, everybody sees it, and every customer's proof leads to it.
func TestLiabilities(t *testing.T) {
	v, instant := stated(t, 2)
	v.Send("", "GET", "/v1/liabilities/1", "").Code(404, "UNKNOWN_STATEMENT")
	v.Send("broker-a", "GET", a1+"/liability-proof", "").Code(404, "UNKNOWN_STATEMENT")
	first := instant()
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-9"}`).Want(201)
	second := instant()
	if first.Position == second.Position || first.Root == second.Root {
		t.Errorf("%+v and %+v", first, second)
	}
	var all struct {
		Records []form.Published `json:"records"`
	}
	v.Send("", "GET", "/v1/liabilities?sort=asc", "").Want(200).JSON(&all)
	if len(all.Records) != 2 || all.Records[0] != first || all.Records[1] != second {
		t.Errorf("the statements are %+v", all.Records)
	}
	for _, want := range []form.Published{first, second} {
		if err := want.Check(); err != nil {
			t.Error(err)
		}
		var one form.Published
		v.Send("", "GET", fmt.Sprint("/v1/liabilities/", want.Position), "").Want(200).JSON(&one)
		if one != want {
			t.Errorf("%+v, not %+v", one, want)
		}
		sum := form.Amount{}
		for _, c := range []struct{ user, code string }{{"broker-a", "A-1"}, {"broker-a", "A-2"}, {"broker-b", "B-1"}} {
			r := v.Send(c.user, "GET", fmt.Sprintf("/v1/customers/%s/liability-proof?position=%d", c.code, want.Position), "").Want(200)
			p, err := form.ParseProof([]byte(r.Body))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(&want); err != nil {
				t.Error(err)
			}
			if sum, err = sum.Plus(p.Value); err != nil {
				t.Fatal(err)
			}
		}
		if sum != want.Total {
			t.Errorf("the proofs sum to %s of %s", sum, want.Total)
		}
	}
	p, err := form.ParseProof([]byte(v.Send("broker-a", "GET", a1+"/liability-proof", "").Want(200).Body))
	if err != nil || p.Recorded != second {
		t.Errorf("without a position the proof is about %+v (%v)", p, err)
	}
	v.Send("broker-a", "GET", "/v1/customers/A-9/liability-proof", "").Want(200)
	v.Send("broker-a", "GET", fmt.Sprint("/v1/customers/A-9/liability-proof?position=", first.Position), "").Code(404, "NOT_YET")
	v.Send("broker-b", "GET", a1+"/liability-proof", "").Code(404, "UNKNOWN_CUSTOMER")
	v.Send("", "GET", a1+"/liability-proof", "").Want(401)
	for _, position := range []string{"0", "-1", "x", "01", "1.0", "99999999999999999999"} {
		v.Send("", "GET", "/v1/liabilities/"+position, "").Code(404, "UNKNOWN_STATEMENT")
	}
	v.Send("broker-a", "GET", a1+"/liability-proof?position=x", "").Want(400)
}

// TestLeavesThatAreNotKept: after 7 days the leaves are not kept any more, and the proof from a past state has the same bytes.
func TestLeavesThatAreNotKept(t *testing.T) {
	v, instant := stated(t, 1)
	first, second := instant(), instant()
	path := func(s form.Published) string { return fmt.Sprint(a1, "/liability-proof?position=", s.Position) }
	v.SweepBalances(time.Now().Add(-time.Hour)) // which deletes nothing
	kept := make(map[int64]string)
	for _, s := range []form.Published{first, second} {
		kept[s.Position] = v.Send("broker-a", "GET", path(s), "").Want(200).Body
	}
	v.SweepBalances(time.Now().Add(time.Hour))
	for _, s := range []form.Published{second, first} {
		if computed := v.Send("broker-a", "GET", path(s), "").Want(200).Body; computed != kept[s.Position] {
			t.Errorf("from the past state, the proof is %s and not %s", computed, kept[s.Position])
		}
	}
}
