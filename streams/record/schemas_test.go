package record_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

var update = flag.Bool("update", false, "write golden files that are missing")

func schemas() conform.Events {
	return conform.Events{Folder: "../../schemas/events/journal", Update: *update}
}

func TestTheJournalsOwnRecordsMatchSchemasAndGoldenFiles(t *testing.T) {
	id, err := scalar.ParseID("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
	if err != nil {
		t.Fatal(err)
	}
	command, err := scalar.ParseID("019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e")
	if err != nil {
		t.Fatal(err)
	}
	at := scalar.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	threshold := fixed.Decimal{Coef: 10000}
	end := decide.ProposalEnd{ID: id, Action: "withdrawal.request", ProposedBy: "operator", Proposed: 7, By: "supervisor", Time: at}
	chain := record.NewChain(recordtest.Rules{}, 0, record.Before)
	seen := make(map[string]bool)
	for i, e := range []decide.Event{
		&record.Genesis{Journal: "trading", JournalID: id, Partition: 0, Partitions: 1},
		&record.TermStarted{Term: 1, Node: "node-1", URL: "http://127.0.0.1:8080", Build: "v0.1.0"},
		&decide.RulesActivated{Rules: 2},
		&decide.DueSetAside{Entry: "expiry/0b6ab0c5-2a6b-8a55-9f2a-7d1e9f1c5a11", Error: "the step panicked"},
		&decide.DuePutBack{Entry: "expiry/0b6ab0c5-2a6b-8a55-9f2a-7d1e9f1c5a11"},
		&decide.CommitmentRotated{Generation: 2, Secret: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"},
		&decide.CommitmentDisclosed{From: 0, To: 8191, Recipient: "Auditors & Co.", By: "operator"},
		&decide.PolicySet{Policy: decide.Policy{Rules: []decide.PolicyRule{{Action: "rules.activate"}, {Action: "withdrawal.request", Threshold: &threshold}}, ProposalSeconds: 86400}},
		&decide.ProposalMade{ID: id, Action: "withdrawal.request", Command: "withdrawal.request", Content: `{"customer_code":"ann","currency":"USDC","amount":"10000","reference_id":"payout-77"}`,
			Objects: []string{"transfers/ann"}, Reference: "payout-77", ProposedBy: "operator", Seen: 6, Created: at, Expires: at + scalar.Day},
		&decide.ProposalConfirmed{ProposalEnd: end},
		&decide.ProposalRejected{ProposalEnd: end},
		&decide.ProposalWithdrawn{ProposalEnd: end},
		&decide.ProposalVoided{ProposalEnd: end, Changed: 8},
		&decide.CheckpointKeyRotated{Generation: 2, Previous: checkpointkeytest.Key(checkpointkeytest.Origin("trading", id), 1),
			Key: checkpointkeytest.Key(checkpointkeytest.Origin("trading", id), 2), Until: at + checkpointkey.Overlap},
	} {
		name := e.EventType()
		seen[name] = true
		made, err := record.Encode(nil, &record.Record{Sequence: int64(i), Prev: chain.Position().Hash, Time: at, Outcome: decide.Accepted,
			Command: decide.Recorded{ID: command, Type: name, Actor: decide.Engine}, Events: []decide.Event{e}})
		if err != nil {
			t.Fatal(err)
		}
		want := schemas().Golden(t, name+".v1.record.json", made)
		if _, ok, err := chain.Admit(int64(i), want); !ok || err != nil {
			t.Errorf("the golden %s is not valid: %v", name, err)
		}
		if err := conform.Validate(t, schemas().Schema(t, "record.schema.json"), want); err != nil {
			t.Error(err)
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		conform.Strict(t, name, schemas().Schema(t, name+".v1.schema.json"), data)
		if name == record.TypeGenesis || name == record.TypeTermStarted {
			schemas().Command(t, name, []string{"{}"}, []string{`{"key":"x"}`})
		}
	}
	for _, shape := range record.Shapes().Shapes() {
		if !seen[shape.Type] {
			t.Errorf("%s has no golden file", shape.Type)
		}
	}
	schemas().NothingElse(t, "golden/*.v1.record.json", seen)
	schemas().NothingElse(t, "*.v1.schema.json", seen)
}

// TestSharedCommandsMatchTheirSchema holds what records keep of the commands that every journal takes against the schema.
func TestSharedCommandsMatchTheirSchema(t *testing.T) {
	for _, name := range decide.NewPayloads().Types() {
		schemas().Command(t, name, []string{`{"key":"k:1","fingerprint":"00ff"}`, "{}"}, []string{`{"rules":2}`, `{"key":""}`})
	}
	schemas().OtherCommands(t, append(decide.NewPayloads().Types(), record.TypeGenesis, record.TypeTermStarted))
}

func TestARecordMatchesItsSchema(t *testing.T) {
	s := schemas().Schema(t, "record.schema.json")
	if err := conform.Validate(t, s, []byte(sampleValue)); err != nil {
		t.Error(err)
	}
	for what, change := range map[string][2]string{
		"an unknown member":  {`{"sequence"`, `{"more":1,"sequence"`},
		"another outcome":    {`"rejected"`, `"refused"`},
		"no events":          {`"events":[`, `"events":[],"x":[`},
		"a short hash":       {`"prev":"ab`, `"prev":"`},
		"an unknown actor":   {`"customer"`, `"account"`},
		"a negative version": {`"version":2`, `"version":-2`},
	} {
		if conform.Validate(t, s, []byte(strings.Replace(sampleValue, change[0], change[1], 1))) == nil {
			t.Errorf("the schema allows %s", what)
		}
	}
}
