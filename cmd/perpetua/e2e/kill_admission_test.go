package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	documents "github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// admitted is what the onboarding journal says, by a fold that shares no code with the engine.
type admitted struct {
	made     map[string][]string // ids by the type of the event, sorted
	finished map[string]string   // owners, by trigger
	records  map[string]int64    // that finished them, by sequence
	notices  map[string][]object // by owner, in the order of the log
	finals   map[string]int      // final notices by trigger
	receipts map[string][]object // attempts by notice
	// destroyed are the records that say so of an owner's key.
	destroyed map[string][]destruction
}

// destruction is a record of one: of which key, and when it was decided.
type destruction struct {
	keyID string
	at    time.Time
}

// foldAdmitted folds the onboarding journal as `perpetua log` prints it. No command may be in it twice.
func foldAdmitted(t *testing.T, lines []string) *admitted {
	t.Helper()
	f := &admitted{made: make(map[string][]string), finished: make(map[string]string), records: make(map[string]int64), notices: make(map[string][]object), finals: make(map[string]int),
		receipts: make(map[string][]object), destroyed: make(map[string][]destruction)}
	var once journaltest.Once
	notice := make(map[string]string) // by delivery
	for _, line := range lines {
		var record struct {
			Sequence int64
			Time     time.Time
			Command  struct{ ID scalar.ID }
			Outcome  decide.Outcome
			Events   []struct {
				Type string
				Data object
			}
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("record %s: %v", line, err)
		}
		if err := once.Add(record.Command.ID, record.Outcome, record.Sequence); err != nil {
			t.Errorf("onboarding: %v", err)
		}
		for _, e := range record.Events {
			switch e.Type {
			case "owner.registered":
				f.made[e.Type] = append(f.made[e.Type], e.Data.text("owner_id"))
			case "delivery.created":
				notice[e.Data.text("id")] = e.Data.text("event_id")
			case "delivery.attempted":
				of := notice[e.Data.text("id")]
				f.receipts[of] = append(f.receipts[of], e.Data)
			case "owner.key_destroyed":
				of := e.Data.text("owner_id")
				f.destroyed[of] = append(f.destroyed[of], destruction{e.Data.text("key_id"), record.Time})
			default:
				f.made[e.Type] = append(f.made[e.Type], e.Data.text("id"))
			}
			f.add(t, record.Sequence, e.Type, e.Data)
		}
	}
	for _, ids := range f.made {
		slices.Sort(ids)
	}
	return f
}

// add takes an event into account that moves a trigger or tells of it.
func (f *admitted) add(t *testing.T, record int64, kind string, data object) {
	t.Helper()
	switch {
	case kind == "entitlement_trigger.moved" && data.text("status") == "finished":
		if f.finished[data.text("id")] != "" {
			t.Errorf("trigger %s finished twice", data.text("id"))
		}
		f.finished[data.text("id")], f.records[data.text("id")] = data.text("owner_id"), record
	case kind == "notice.given":
		f.notices[data.text("owner_id")] = append(f.notices[data.text("owner_id")], data)
		if data.text("type") == "entitlementCompleted" {
			f.finals[data.text("entitlement_trigger_id")]++
		}
	}
}

// check holds what the applicants know, who have finished, against the log, and with it what the receiver was told, the trading
// accounts and the files. The venue is where commands and the rows are found.
func (m *admission) check(t *testing.T, v *venue) {
	t.Helper()
	m.settle(t, v)
	log := foldAdmitted(t, v.records("onboarding"))
	for _, event := range []string{"owner.registered", "document.added", "entitlement_trigger.created", "response.added"} {
		if known := m.filed(event); !slices.Equal(known, log.made[event]) {
			t.Errorf("%s: acknowledged were %d, in the log are %d:\n%v\n%v", event, len(known), len(log.made[event]), known, log.made[event])
		}
	}
	for _, id := range m.filed("entitlement_trigger.created") {
		if log.finished[id] == "" || log.finals[id] != 1 {
			t.Errorf("trigger %s finished for %q, with %d final notices", id, log.finished[id], log.finals[id])
		}
	}
	m.checkTold(t, log)
	checkOpened(t, log, v.records("trading", "--type", "customer.registered"))
	m.checkFiles(t, log, v)
	again := 0
	for _, a := range m.applicants {
		for _, f := range a.filed {
			again += f.sent - 1
		}
	}
	t.Logf("%d persons were admitted; %d writes were sent again, and %d parcels came for %d notices", len(log.finished), again,
		len(m.hooks.came(admissionHook, 0)), len(log.made["notice.given"]))
}

// settle waits until the rows have every trigger finished, everything told and every account opened.
func (m *admission) settle(t *testing.T, v *venue) {
	t.Helper()
	db := v.database()
	defer db.Close(context.Background())
	want := len(m.filed("entitlement_trigger.created"))
	waitForWord(t, "everything to be told and all accounts to be opened", func() string {
		var finished, told, all, opened int
		err := db.QueryRow(context.Background(), `SELECT (SELECT count(*) FROM triggers WHERE status = 'finished' AND result = 'success'),
			(SELECT count(*) FROM deliveries WHERE status = 'delivered'), (SELECT count(*) FROM deliveries),
			(SELECT count(*) FROM customers WHERE length(customer_code) = 32)`).Scan(&finished, &told, &all, &opened)
		if err == nil && finished == want && told == all && opened == want {
			return ""
		}
		return fmt.Sprintf("of %d triggers %d are finished, with %d accounts; %d of %d deliveries are told (%v)", want, finished, opened, told, all, err)
	})
}

// checkTold wants every notice to have come, with one body, which is the notice's; and those about one owner in their order, if
// none of them had to wait for another try.
func (m *admission) checkTold(t *testing.T, log *admitted) {
	t.Helper()
	bodies, first := make(map[string][]byte), make(map[string]int)
	for i, p := range m.hooks.came(admissionHook, http.StatusOK) {
		id := p.Header.Get("webhook-id")
		if body, came := bodies[id]; came && !bytes.Equal(body, p.Body) {
			t.Errorf("notice %s came as\n%s\nand as\n%s", id, body, p.Body)
		} else if !came {
			bodies[id], first[id] = p.Body, i
		}
	}
	if refused := m.hooks.came(admissionHook, http.StatusUnauthorized); len(refused) != 0 {
		t.Errorf("not signed as it should be: %s", refused[0].Body)
	}
	for owner, notices := range log.notices {
		last, ordered := -1, true
		for i, n := range notices {
			id := n.text("id")
			receipts := log.receipts[id]
			place, came := first[id]
			delete(bodies, id)
			if !came || len(receipts) == 0 || receipts[len(receipts)-1].text("status") != "delivered" {
				t.Errorf("notice %s of %s: it came: %v, and its receipts are %v", id, owner, came, receipts)
				continue
			}
			if n.text("sequence") != fmt.Sprint(i+1) {
				t.Errorf("notice %d of %s has the number %s", i+1, owner, n.text("sequence"))
			}
			if ordered && place < last {
				t.Errorf("notice %s of %s came before the one before it", id, owner)
			}
			last, ordered = max(last, place), ordered && len(receipts) == 1
		}
	}
	for id, body := range bodies {
		t.Errorf("the log has no notice %s, which came: %s", id, body)
	}
}

// checkOpened wants each finished trigger to have opened its owner's account once, by a command that names the record that finished
// it, in the order of those records, and the bridge to have opened no others.
func checkOpened(t *testing.T, log *admitted, records []string) {
	t.Helper()
	opened, last := make(map[string][]int64), int64(-1)
	for _, line := range records {
		var record struct {
			Command struct {
				Data struct {
					Source struct {
						Journal  string
						Sequence int64
					}
				}
			}
			Events []struct {
				Type string
				Data object
			}
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("record %s: %v", line, err)
		}
		for _, e := range record.Events {
			from, code := record.Command.Data.Source, e.Data.text("customer_code")
			if e.Type != "customer.registered" || from.Journal == "" && len(code) != 32 { // of a broker's own
				continue
			}
			opened[code] = append(opened[code], from.Sequence)
			if from.Journal != "onboarding" || from.Sequence <= last {
				t.Errorf("%s follows an account of the record %d: %s", code, last, line)
			}
			last = from.Sequence
		}
	}
	if len(opened) != len(log.finished) {
		t.Errorf("%d accounts were opened for %d triggers", len(opened), len(log.finished))
	}
	for trigger, owner := range log.finished {
		if from := opened[strings.ReplaceAll(owner, "-", "")]; !slices.Equal(from, []int64{log.records[trigger]}) {
			t.Errorf("trigger %s, which the record %d finished, opened the account of %s by %v", trigger, log.records[trigger], owner, from)
		}
	}
}

// checkFiles wants each document to have its file, and no more others than uploads were broken off.
func (m *admission) checkFiles(t *testing.T, log *admitted, v *venue) {
	t.Helper()
	broken := 0
	for _, a := range m.applicants {
		broken += a.broken
	}
	lacking, others := log.filesOf(v)
	if len(lacking) > 0 || len(others) > broken {
		t.Errorf("%v have no file; of no document are %v, with %d uploads that were broken off", lacking, others, broken)
	}
}

// filesOf compares the files in the bucket with the documents of the log.
func (f *admitted) filesOf(v *venue) (lacking, others []string) {
	there := make(map[string]bool)
	for _, path := range v.uploaded() {
		there[filepath.Base(path)] = true
		if _, known := slices.BinarySearch(f.made["document.added"], filepath.Base(path)); !known {
			others = append(others, path)
		}
	}
	for _, id := range f.made["document.added"] {
		if !there[id] {
			lacking = append(lacking, id)
		}
	}
	return lacking, others
}

// age makes all files in the bucket as old as the sweep wants them to be.
func age(t *testing.T, v *venue) {
	t.Helper()
	long := time.Now().Add(-2 * documents.Orphaned)
	for _, path := range v.uploaded() {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
}

// swept waits until nothing is left in the bucket that is of no document and old enough to be swept.
func (m *admission) swept(t *testing.T, v *venue) {
	t.Helper()
	log := foldAdmitted(t, v.records("onboarding"))
	waitForWord(t, "what was broken off to be swept", func() string {
		lacking, others := log.filesOf(v)
		if len(lacking) > 0 {
			t.Fatalf("%v were swept, and are documents", lacking)
		}
		for _, path := range others {
			if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > documents.Orphaned {
				return path
			}
		}
		return ""
	})
}
