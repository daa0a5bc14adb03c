package decide

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var aSecret = strings.Repeat("0f", 16)

// at decides a command in the record with a sequence.
func (c *Core) at(t *testing.T, sequence int64, p Payload) (Event, string) {
	t.Helper()
	cmd, at := Command{Type: p.CommandType(), Actor: Actor{Sub: "operator", Broker: "venue"}, Payload: p}, Stamp{Sequence: sequence}
	d, _, err := c.Decide(at, cmd, nil)
	if err != nil {
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		return nil, strings.TrimSpace(refusal.Code + " " + refusal.Field)
	}
	c.Evolve(at, cmd.Recorded(), d.Events)
	again, ok := NewPayloads().New(cmd.Type)
	if !ok {
		t.Fatalf("there is no %s", cmd.Type)
	}
	if err := again.Reconstruct(&Evidence{At: at, Command: cmd.Recorded(), Events: d.Events}); err != nil {
		t.Fatal(err)
	}
	return d.Events[0], fmt.Sprintf("%+v", again)
}

// TestRotationsAndDisclosures: generations follow one another, the span of a disclosure is widened to all that the keys give, and
// what the record says leads to the same record.
func TestRotationsAndDisclosures(t *testing.T) {
	c := NewCore(Numbers{Newest: 2, Commitments: 2})
	if _, code := c.at(t, 1, &RotateCommitment{2, aSecret}); code != "COMMITMENTS_NOT_IN_FORCE" {
		t.Errorf("rules 1 rotate: %s", code)
	}
	if _, code := c.at(t, 1, &DiscloseCommitment{0, 0, "auditor"}); code != "COMMITMENTS_NOT_IN_FORCE" {
		t.Errorf("rules 1 disclose: %s", code)
	}
	c.at(t, 1, &ActivateRules{Rules: 2})
	for n, tt := range []struct {
		sequence int64
		payload  Payload
		want     string
	}{
		{9, &DiscloseCommitment{4, 5, "auditor"}, "SECRET_NOT_NAMED"},
		{9, &RotateCommitment{2, aSecret}, "GENERATION_NOT_NEXT generation"},
		{9, &RotateCommitment{1, aSecret}, "&{Generation:1 Secret:" + aSecret + "}"},
		{10, &RotateCommitment{1, aSecret}, "GENERATION_NOT_NEXT generation"},
		{10, &RotateCommitment{3, aSecret}, "GENERATION_NOT_NEXT generation"},
		{10, &RotateCommitment{2, aSecret[1:]}, "INVALID_SECRET secret"},
		{10, &RotateCommitment{2, strings.ToUpper(aSecret)}, "INVALID_SECRET secret"},
		{10, &DiscloseCommitment{-1, 3, "auditor"}, "INVALID_FROM from"},
		{10, &DiscloseCommitment{4, 3, "auditor"}, "INVALID_TO to"},
		{10, &DiscloseCommitment{4, 10, "auditor"}, "INVALID_TO to"},
		{10, &DiscloseCommitment{4, 5, ""}, "INVALID_RECIPIENT recipient"},
		{10, &DiscloseCommitment{4, 5, "a\nb"}, "INVALID_RECIPIENT recipient"},
		{10, &DiscloseCommitment{4, 5, strings.Repeat("a", 256)}, "INVALID_RECIPIENT recipient"},
		{10, &DiscloseCommitment{4, 5, "\xff"}, "INVALID_RECIPIENT recipient"},
		{10, &DiscloseCommitment{4, 9, "auditor"}, "&{From:0 To:4095 Recipient:auditor By:operator}"},
		{20, &RotateCommitment{2, aSecret}, "&{Generation:2 Secret:" + aSecret + "}"},
		{21, &RotateCommitment{2, aSecret}, "GENERATION_NOT_NEXT generation"},
		{21, &DiscloseCommitment{4, 20, "auditor"}, "&{From:0 To:20 Recipient:auditor By:operator}"},
		{9000, &DiscloseCommitment{21, 5000, "auditor"}, "&{From:21 To:8191 Recipient:auditor By:operator}"},
		{9001, &DiscloseCommitment{9000, 9000, "auditor"}, "&{From:8192 To:12287 Recipient:auditor By:operator}"},
	} {
		before := c
		e, got := c.at(t, tt.sequence, tt.payload)
		if e == nil {
			if got != tt.want {
				t.Errorf("%d: %s, want %s", n, got, tt.want)
			}
			continue
		}
		if made := fmt.Sprintf("%+v", e); made != tt.want {
			t.Errorf("%d: %s, want %s", n, made, tt.want)
		}
		p, _ := NewPayloads().New(tt.payload.CommandType())
		at := Stamp{Sequence: tt.sequence}
		if err := p.Reconstruct(&Evidence{At: at, Events: []Event{e}}); err != nil {
			t.Fatal(err)
		}
		d, _, err := before.Decide(at, Command{Type: p.CommandType(), Actor: Actor{Sub: "operator"}, Payload: p}, nil)
		if err != nil || fmt.Sprintf("%+v", d.Events[0]) != tt.want {
			t.Errorf("%d: %+v is decided again as %+v (%v)", n, p, d.Events, err)
		}
	}
	s := c.Commitments()
	if rotations := s.Rotations(); len(rotations) != 2 || rotations[1].Sequence != 20 || rotations[1].Secret != aSecret {
		t.Errorf("the rotations are %v", rotations)
	}
	if e, _ := c.at(t, 9002, &DiscloseCommitment{0, 0, "a"}); e == nil {
		t.Error("nothing is disclosed")
	}
	d, _, err := c.Decide(Stamp{Sequence: 9003}, Command{Type: CommandDiscloseCommitment, Actor: Actor{System: "bootstrap"}, Payload: &DiscloseCommitment{0, 0, "a"}}, nil)
	if err != nil || d.Events[0].(*CommitmentDisclosed).By != "bootstrap" {
		t.Errorf("%+v, %v", d, err)
	}
}
