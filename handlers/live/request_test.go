package live

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseRequest(t *testing.T) {
	for name, c := range map[string]struct{ raw, fault, id string }{
		"subscribe":            {`{"op":"subscribe","args":["orders"],"data":{"customer_code":"C1","positions":true},"resume_from":"trading/0@1","id":"a"}`, "", `"a"`},
		"unsubscribe":          {`{"op":"unsubscribe","args":["orders"],"id":-1.5}`, "", `-1.5`},
		"authenticate":         {`{"op":"authenticate","data":{"token":"t"}}`, "", ""},
		"ping":                 {` {"op":"ping"} `, "", ""},
		"empty":                {``, "not valid JSON", ""},
		"not an object":        {`[1]`, "must be a JSON object", ""},
		"null":                 {`null`, "must be a JSON object", ""},
		"trailing data":        {`{"op":"ping"}{}`, "not valid JSON", ""},
		"cut":                  {`{"op":"ping"`, "not valid JSON", ""},
		"repeated":             {`{"op":"ping","op":"ping"}`, "given twice", ""},
		"repeated in data":     {`{"op":"authenticate","data":{"token":"a","token":"b"}}`, "given twice", ""},
		"invalid UTF-8":        {"{\"op\":\"pi\xffng\"}", "not valid JSON", ""},
		"lone surrogate":       {`{"op":"\ud800"}`, "not valid JSON", ""},
		"no op":                {`{"id":7}`, "op must be one of", "7"},
		"unknown op":           {`{"op":"shout","id":7}`, "op must be one of", "7"},
		"op in capitals":       {`{"op":"PING"}`, "op must be one of", ""},
		"field in capitals":    {`{"OP":"ping"}`, "op must be one of", ""},
		"op of another type":   {`{"op":1}`, "op must be a string", ""},
		"op null":              {`{"op":null}`, "op must be a string", ""},
		"unknown field":        {`{"op":"ping","extra":1,"id":"x"}`, `no field "extra"`, `"x"`},
		"args for ping":        {`{"op":"ping","args":[]}`, `no field "args"`, ""},
		"resume unsubscribing": {`{"op":"unsubscribe","args":["a"],"resume_from":"x"}`, `no field "resume_from"`, ""},
		"token to subscribe":   {`{"op":"subscribe","args":["a"],"data":{"token":"x"}}`, `no field "data.token"`, ""},
		"no args":              {`{"op":"subscribe"}`, "1 to 100 topics", ""},
		"empty args":           {`{"op":"subscribe","args":[]}`, "1 to 100 topics", ""},
		"args as a string":     {`{"op":"subscribe","args":"orders"}`, "args must be an array", ""},
		"null in args":         {`{"op":"subscribe","args":["orders",null]}`, "args must be an array", ""},
		"number in args":       {`{"op":"subscribe","args":[1]}`, "args must be an array", ""},
		"empty topic":          {`{"op":"subscribe","args":[""]}`, "1 to 128 bytes", ""},
		"long topic":           {`{"op":"subscribe","args":["` + strings.Repeat("x", 129) + `"]}`, "1 to 128 bytes", ""},
		"data as an array":     {`{"op":"subscribe","args":["a"],"data":[]}`, "data must be an object", ""},
		"data null":            {`{"op":"subscribe","args":["a"],"data":null}`, "data must be an object", ""},
		"positions as text":    {`{"op":"subscribe","args":["a"],"data":{"positions":"true"}}`, "data.positions must be true or false", ""},
		"empty customer":       {`{"op":"subscribe","args":["a"],"data":{"customer_code":""}}`, "must not be empty", ""},
		"empty resume":         {`{"op":"subscribe","args":["a"],"resume_from":""}`, "must not be empty", ""},
		"no token":             {`{"op":"authenticate"}`, "data.token is required", ""},
		"null id":              {`{"op":"ping","id":null}`, "id must be", ""},
		"object as id":         {`{"op":"ping","id":{}}`, "id must be", ""},
		"long id":              {`{"op":"ping","id":"` + strings.Repeat("x", 63) + `"}`, "id must be", ""},
	} {
		r, err := parseRequest([]byte(c.raw))
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
		if string(r.id) != c.id {
			t.Errorf("%s: id %s, want %s", name, r.id, c.id)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"op":"subscribe","args":["orders"],"data":{"customer_code":"C1"},"id":1}`))
	f.Add([]byte(`{"op":"authenticate","data":{"token":"\u00e9"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRequest(raw)
		if r == nil {
			t.Fatal("no request")
		}
		if err == nil && (!utf8.Valid(raw) || shapes[r.op].request == nil && len(r.args) > 0) {
			t.Errorf("%q was read as %+v", raw, r)
		}
		reply := errorReply(r.id, InvalidMessage, "fault", r.args...) // whatever came must fit into an answer
		if !utf8.Valid(reply) {
			t.Errorf("the answer to %q is not UTF-8", raw)
		}
	})
}

// TestAPartIsOfItsTopic: where a record has messages on the topics of two symbols, a position stands behind those of its own
// topic alone.
func TestAPartIsOfItsTopic(t *testing.T) {
	h := &Hub{sources: sources{journal: "trading"}}
	drafts := []draft{{channel: marketTrades, symbol: "X"}, {channel: marketTrades, symbol: "Y"}, {channel: marketTrades, symbol: "X"},
		{channel: marketTrades, symbol: "Y"}, {channel: marketTrades, symbol: "Y"}}
	places := positions(h.logPosition(7), drafts)
	for i, left := range places {
		from, refused := h.parsePosition(left.text)
		if refused != nil {
			t.Fatalf("%s: %s", left.text, refused.message)
		}
		for j, p := range places {
			if drafts[j].symbol == drafts[i].symbol && from.had(7, p) != (j <= i) {
				t.Errorf("resumed at %s, the %d. message counts as had: %t", left.text, j+1, from.had(7, p))
			}
		}
	}
}

func TestParsePosition(t *testing.T) {
	h := &Hub{sources: sources{journal: "trading"}}
	for text, want := range map[string]*catchUp{
		"trading/0@123": {after: 123}, "trading/0@123.2": {after: 122, part: 2},
		"trading/0@0.1":   {after: -1, part: 1},
		"trading/0@123.0": nil, "trading/0@123.": nil, "trading/0@123.02": nil, "trading/0@-1": nil, "trading/0@-1.1": nil, "trading/1@5": nil,
		"identity/0@5": nil, "": nil, "123": nil, "trading/0@9223372036854775808": nil, "trading/0@1.99999999999999999999": nil,
	} {
		got, refused := h.parsePosition(text)
		if (want == nil) != (refused != nil) || want != nil && (got.after != want.after || got.part != want.part) {
			t.Errorf("%q: %+v %+v, want %+v", text, got, refused, want)
		}
	}
}
