package live

import (
	"encoding/json" // the document's numbers are its json.Number
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/schemas/bundle"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

func describe(t *testing.T) *conform.Document {
	t.Helper()
	text, err := bundle.AsyncAPI()
	if err != nil {
		t.Fatal(err)
	}
	d, err := conform.NewDocument("asyncapi/asyncapi.yaml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDescribedAsServed holds the AsyncAPI file against the program in both directions.
func TestDescribedAsServed(t *testing.T) {
	d := describe(t)
	var topics, operations, codes []string
	channels, _ := d.At("/channels")
	for name, c := range channels.(map[string]any) {
		if address := c.(map[string]any)["address"].(string); name == "socket" {
			if "/"+address != Path {
				t.Errorf("the socket is described at %s and served at %s", address, Path)
			}
		} else {
			topics = append(topics, address)
		}
	}
	described, _ := d.At("/operations")
	for name, o := range described.(map[string]any) {
		if o.(map[string]any)["action"] == "receive" {
			at := "/components/messages/" + strings.ToUpper(name[:1]) + name[1:] + "/payload/properties/op/const"
			op, _ := d.At(at)
			text, ok := op.(string)
			if !ok || !strings.HasPrefix(text, "order.") && text != name {
				t.Errorf("the operation %s has the op %v", name, op)
			}
			operations = append(operations, text)
		}
	}
	listed, _ := d.At("/components/schemas/ErrorCode/enum")
	text, _ := d.At("/components/schemas/ErrorCode/description")
	for _, code := range listed.([]any) {
		codes = append(codes, code.(string))
		if !strings.Contains(text.(string), "`"+code.(string)+"`") {
			t.Errorf("%s is not explained", code)
		}
	}
	var known []string
	for _, c := range allCodes() {
		known = append(known, string(c))
	}
	same(t, "topics", topics, allTopics())
	same(t, "operations", operations, Operations())
	same(t, "error codes", codes, known)
}

func same(t *testing.T, what string, described, served []string) {
	t.Helper()
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("%s: described %v, served %v", what, described, served)
	}
}

// TestDescribedOperations checks that every message of every channel is sent or received, that references lead
// somewhere, and that the examples are of the shape that they illustrate.
func TestDescribedOperations(t *testing.T) {
	d := describe(t)
	used := make(map[string]bool)
	operations, _ := d.At("/operations")
	var refs func(v any)
	refs = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				used[ref] = true
				if target, _ := d.At(strings.TrimPrefix(ref, "#")); target == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, member := range v {
				refs(member)
			}
		case []any:
			for _, item := range v {
				refs(item)
			}
		}
	}
	refs(operations)
	channels, _ := d.At("/channels")
	for name, c := range channels.(map[string]any) {
		for message := range c.(map[string]any)["messages"].(map[string]any) {
			if !used["#/channels/"+name+"/messages/"+message] {
				t.Errorf("no operation uses the message %s of the channel %s", message, name)
			}
		}
	}
	whole, _ := d.At("")
	refs(whole)
	messages, _ := d.At("/components/messages")
	for name, m := range messages.(map[string]any) {
		examples, _ := m.(map[string]any)["examples"].([]any)
		if len(examples) == 0 {
			t.Errorf("the message %s has no example", name)
		}
		for _, example := range examples {
			raw, err := json.Marshal(example.(map[string]any)["payload"])
			if err == nil {
				err = d.Validate("/components/messages/"+name+"/payload", raw)
			}
			if err != nil {
				t.Errorf("an example of %s: %v", name, err)
			}
		}
	}
}

// TestEveryOperationIsDescribed wants of each operation a summary and a description, for who reads the reference.
func TestEveryOperationIsDescribed(t *testing.T) {
	operations, _ := describe(t).At("/operations")
	for name, o := range operations.(map[string]any) {
		for _, member := range []string{"summary", "description"} {
			if text, _ := o.(map[string]any)[member].(string); strings.TrimSpace(text) == "" {
				t.Errorf("the operation %s has no %s", name, member)
			}
		}
	}
}

// TestDescribedLimits checks the numbers that the file states.
func TestDescribedLimits(t *testing.T) {
	l := Limits{}.withDefaults()
	text, _ := describe(t).At("/info/description")
	for _, want := range []string{
		fmt.Sprintf("| %d KiB |", l.MessageBytes>>10), fmt.Sprintf("topics in a request | %d |", maxTopics),
		fmt.Sprintf("| %v a second, %d at once |", l.RequestsPerSecond, l.RequestBurst),
		fmt.Sprintf("order entry under way | %d |", l.Entries), fmt.Sprintf("Up to %d requests of a connection may be under way", l.Entries),
		fmt.Sprintf("after %d in a row", l.RequestExcess), fmt.Sprintf("subscriptions of a connection | %d |", l.Subscriptions),
		"| connections of a node | 16,384 |", fmt.Sprintf("for %v seconds and is then answered 503", readyWait.Seconds()),
		"| 2,048, and 8 MiB |", "more than 2,048 messages or 8 MiB", "| 1,000,000 |", fmt.Sprintf("at most %d bytes", maxID),
		fmt.Sprintf("pings every %v seconds", l.PingEvery.Seconds()), fmt.Sprintf("no pong comes for %v.", l.PongWait.Seconds()),
		fmt.Sprintf("takes nothing for %v seconds", l.WriteWait.Seconds()), fmt.Sprintf("kept for\n  %v minutes", l.SlowWait.Minutes()),
		fmt.Sprintf("not longer than %v seconds for three quarters", l.ResumeWait.Seconds()),
	} {
		if !strings.Contains(text.(string), want) {
			t.Errorf("the description does not say %q", want)
		}
	}
	if l.Connections != 16384 || l.QueueMessages != 2048 || l.QueueBytes != 8<<20 || l.ResumeRecords != 1_000_000 {
		t.Error("the limits are not as described")
	}
}

// allCodes returns all codes of error messages.
func allCodes() []Code {
	return []Code{
		UnknownSymbol, UnknownTopic, AlreadySubscribed, NotSubscribed, InvalidMessage, AuthenticationRequired,
		AuthenticationFailed, Forbidden, ReadOnly, SlowConsumer, RateLimited, ResumeTooOld, UpstreamError,
		OrderbookUpstreamError, OrderbookUpstreamReject, TradesUpstreamError, TradesUpstreamReject,
	}
}

// allTopics returns the topics of all channels, with the placeholders {symbol} and {interval}.
func allTopics() []string {
	var names []string
	for _, c := range channels() {
		names = append(names, c.topic([...]string{"", "{symbol}", "{interval}:{symbol}"}[c.suffix]))
	}
	return names
}
