package entitlement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

func id(n byte) scalar.ID { return scalar.ID{15: n} }

// TestTransitions is the table of the specification, written out: every action from every state, and what is not in it is
// refused.
func TestTransitions(t *testing.T) {
	want := map[string]string{
		"pending start": "ongoing", "pending fail": "failed fail", "pending cancel": "canceled fail", "pending terminate": "terminated fail",
		"ongoing request_information": "ongoing", "ongoing request_video_identification": "ongoing", "ongoing complete_video_identification": "ongoing",
		"ongoing block": "blocked", "ongoing approve": "finished success", "ongoing reject": "finished fail", "ongoing fail": "failed fail",
		"ongoing cancel": "canceled fail", "ongoing terminate": "terminated fail",
		"blocked release": "ongoing", "blocked cancel": "canceled fail", "blocked terminate": "terminated fail",
	}
	for _, from := range []Status{Pending, Ongoing, Blocked, Finished, Failed, Canceled, Terminated} {
		for _, a := range append(Actions(), "answer", "") {
			to, result, allowed := Next(from, a)
			got := strings.TrimSpace(string(to) + " " + string(result))
			expected, known := want[string(from)+" "+string(a)]
			if allowed != known || allowed && got != expected || !allowed && to != from {
				t.Errorf("%s from %s: %q, %t; want %q, %t", a, from, got, allowed, expected, known)
			}
			if allowed && (result == NoResult) != to.IsOpen() {
				t.Errorf("%s has the result %q", to, result)
			}
		}
	}
}

// TestRequirements: a case of two questionnaires, of which one was answered in an old version, with requests on the way.
func TestRequirements(t *testing.T) {
	n := &Needs{Pinned: []Pinned{{id(1), 2}, {id(2), 1}}, VideoPlanned: true}
	responses := map[scalar.ID]Answered{}
	answered := func(q scalar.ID) Answered { return responses[q] }
	var last []Requirement
	step := func(what, open, grew string) {
		t.Helper()
		now := n.Open(answered)
		var got []string
		for _, r := range now {
			s := string(r.Source)
			for _, q := range r.Questionnaires {
				s += fmt.Sprint(" ", q[15])
			}
			got = append(got, s)
		}
		if strings.Join(got, ", ") != open {
			t.Errorf("%s: open are %q, want %q", what, got, open)
		}
		newest, grown := Grew(last, now)
		if grown != (grew != "") || string(newest.Source) != grew {
			t.Errorf("%s: grew by %q, %t; want %q", what, newest.Source, grown, grew)
		}
		last = now
	}

	step("at first", "definition 1 2", "definition")
	responses[id(1)] = Answered{Version: 1, Sequence: 5}
	step("an answer to an old version", "definition 1 2", "")
	responses[id(2)] = Answered{Version: 3, Sequence: 6}
	step("an answer to a newer version", "definition 1", "")
	n.Requests = append(n.Requests, Request{ID: id(50), Sequence: 7, Questionnaires: []scalar.ID{id(2), id(3)}})
	step("a request for what was answered before", "definition 1, request 2 3", "request")
	if n.VideoDue(last) || n.Met(last) {
		t.Error("a video identification before the questionnaires")
	}
	responses[id(2)] = Answered{Version: 3, Sequence: 8}
	step("a later response meets its part of the request", "definition 1, request 3", "")
	responses[id(1)], responses[id(3)] = Answered{Version: 2, Sequence: 9}, Answered{Version: 1, Sequence: 10}
	step("all are answered", "", "")
	if !n.VideoDue(last) || n.Met(last) {
		t.Error("now the video identification is due")
	}
	n.Video, n.VideoSequence = VideoAsked, 11
	step("it is asked for", "video_identification", "video_identification")
	n.Requests = append(n.Requests, Request{ID: id(51), Sequence: 12, Questionnaires: []scalar.ID{id(3)}})
	step("and something more", "video_identification, request 3", "request")
	n.Video = VideoPassed
	step("it is passed", "request 3", "")
	responses[id(3)] = Answered{Version: 1, Sequence: 13}
	step("that too", "", "")
	if !n.Met(last) {
		t.Error("all is met")
	}
}
