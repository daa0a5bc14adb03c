package admin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

type recordList struct {
	Journal string `json:"journal"`
	Records []struct {
		Sequence int64  `json:"sequence"`
		Offset   int64  `json:"offset"`
		Hash     string `json:"hash"`
		Value    string `json:"value"`
	} `json:"records"`
}

// TestRecords checks the chain as any client can: from the answer alone.
func TestRecords(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	const path = base + "/journals/trading/records"
	var list recordList
	v.Send("auditor", "GET", path, "").Want(200).JSON(&list)
	entries := v.Trading.Entries()
	if list.Journal != "trading" || len(list.Records) != len(entries) {
		t.Fatalf("%d records of %s, want %d", len(list.Records), list.Journal, len(entries))
	}
	prev := strings.Repeat("0", 64)
	for i, r := range list.Records {
		sum := sha256.Sum256([]byte(r.Value))
		var value struct {
			Sequence int64  `json:"sequence"`
			Prev     string `json:"prev"`
		}
		if err := json.Unmarshal([]byte(r.Value), &value); err != nil {
			t.Fatal(err)
		}
		if r.Value != string(entries[i].Value) || r.Hash != hex.EncodeToString(sum[:]) || value.Prev != prev || value.Sequence != r.Sequence {
			t.Errorf("record %d is %+v", i, r)
		}
		prev = r.Hash
	}

	last := entries[len(entries)-1].Position.Sequence
	var two, none recordList
	v.Send("operator", "GET", path+"?page_size=2", "").Want(200).JSON(&two)
	if n := len(two.Records); n != 2 || two.Records[1].Sequence != last {
		t.Errorf("the last two are %+v", two)
	}
	v.Send("operator", "GET", path+fmt.Sprintf("?page_size=2&after=%d", last-3), "").Want(200).JSON(&two)
	if n := len(two.Records); n != 2 || two.Records[0].Sequence != last-2 {
		t.Errorf("the two after %d are %+v", last-3, two)
	}
	v.Send("operator", "GET", path+fmt.Sprintf("?after=%d", last), "").Want(200).JSON(&none)
	if len(none.Records) != 0 {
		t.Errorf("after the last one comes %+v", none)
	}
	v.Send("operator", "GET", base+"/journals/nonsense/records", "").Code(404, "UNKNOWN_JOURNAL")
	v.Send("broker-a", "GET", path, "").Want(403)
	v.Send("", "GET", path, "").Want(401)
}
