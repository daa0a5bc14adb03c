package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// fence is what /readyz says of a venue's fence.
type fenceSaid struct {
	Status  string
	Epoch   int
	Venue   string `json:"venue_id"`
	Command string
}

func (v *venue) fence() fenceSaid {
	v.t.Helper()
	var s struct{ Fence fenceSaid }
	waitFor(v.t, "the node to know its fence", func() bool { // a late read of the key store counts as away for a moment
		s.Fence = fenceSaid{}
		if err := json.Unmarshal(v.do("", http.MethodGet, "/readyz", nil).Body, &s); err != nil {
			v.t.Fatal(err)
		}
		return s.Fence.Status != "away"
	})
	return s.Fence
}

// asFolder returns a file of the key store of a venue about a subject.
func (v *venue) keyFile(s *subject, folder string) string {
	return filepath.Join(v.dir, "keys", folder, s.kind, s.id)
}

// keyIsThere reports whether the key store holds a key of the subject, and no tombstone.
func (v *venue) keyIsThere(s *subject) bool {
	v.t.Helper()
	text, err := os.ReadFile(v.keyFile(s, "owners"))
	if err != nil {
		v.t.Fatal(err)
	}
	return !strings.Contains(string(text), "destroyed_at")
}

// register makes a subject with a name to read. Its mark ends with a digit.
func (v *venue) register(mark string) *subject {
	v.t.Helper()
	s := &subject{venue: v, kind: "person", mark: mark}
	s.id = v.must(201, "broker-a", http.MethodPost, "/api/v1/persons", s.fields()).get("id")
	return s
}

// reads reports whether an operator of a venue reads the subject's name there.
func (s *subject) readBy(v *venue) bool {
	v.t.Helper()
	a := v.do("operator", http.MethodGet, s.path("/api/v1", ""), nil)
	return a.Status == 200 && strings.Contains(string(a.Body), s.mark)
}

// ping has a test event sent to a webhook and returns its id. Two venues of one log give the same ids, so each has a webhook of
// its own.
func (v *venue) ping(hook string) string {
	v.t.Helper()
	a := v.must(201, "broker-a", http.MethodPost, "/api/v1/webhooks/"+hook+"/test", nil)
	id := a.get("event_id")
	if id == "" {
		v.t.Fatalf("a test event has no id: %s", a.Body)
	}
	return id
}

// told reports whether an event came to a path of the receiver.
func (r *webhookReceiver) told(path, event string) bool {
	for _, p := range r.came(path, 0) {
		if p.Header.Get("webhook-id") == event {
			return true
		}
	}
	return false
}

// TestARestoredVenue restores a backup of a venue beside it. Both use the same keys.
func TestARestoredVenue(t *testing.T) {
	copyOfAVenue(t, func(live, copied *venue) {
		file := filepath.Join(t.TempDir(), "log.zst")
		live.performed("log", "copy", "--from", live.dir, "--to", file)
		copied.performed("log", "copy", "--from", file, "--to", copied.dir)
		if out, err := exec.Command("cp", "-p", filepath.Join(live.dir, "users.json"), copied.dir).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
	})
}

// TestACopiedVenue copies the folder of a venue. Both use the same keys.
func TestACopiedVenue(t *testing.T) {
	copyOfAVenue(t, func(live, copied *venue) {
		live.stop()
		if out, err := exec.Command("cp", "-a", live.dir+"/.", copied.dir).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
		live.start()
	})
}

// TestACopyWithItsKeys copies a folder with the key store in it. The copy acts as little as one that shares the keys, until it
// takes over. That changes only its own fence, and says so.
func TestACopyWithItsKeys(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	t.Parallel()
	receiver := newWebhookReceiver(t)
	common := []string{"--webhook-allow", "127.0.0.0/8", "--webhook-ca", receiver.CA}
	live, copied := newVenue(t, common...), newVenue(t, common...)
	live.start()
	hook, asked := live.registerWebhook(receiver, "/"), live.register("Kakapo-2")
	live.stop()
	if out, err := exec.Command("cp", "-a", live.dir+"/.", copied.dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	for _, v := range []*venue{live, copied} {
		v.start()
		t.Cleanup(v.stop)
	}
	liveToken := live.token("operator")
	isFenced(t, copied)
	browser := startBrowser(t)
	for _, page := range []string{"/", "/compliance"} {
		browser.open(copied.REST + page)
		browser.sees("#banner", "Fenced", "perpetua admin take-over")
	}
	tokensOfTwoVenues(t, live, copied, liveToken)

	copied.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	onCopy := &subject{venue: copied, kind: asked.kind, id: asked.id, mark: asked.mark}
	onCopy.erase()
	copiedHook := copied.registerWebhook(receiver, "/copy")
	silent := copied.ping(copiedHook)
	waitFor(t, "the erasure in the copy's log", func() bool { return onCopy.certificate(copied)["erased_at"] != nil })
	known := live.ping(hook) // as long as a delivery takes
	waitFor(t, "a delivery of the live venue", func() bool { return receiver.told("/", known) })
	for name, v := range map[string]*venue{"the live venue": live, "the copy": copied} {
		if !v.keyIsThere(asked) {
			t.Errorf("%s has no key any more", name)
		}
	}
	if n := len(receiver.came("/copy", 0)); n > 0 {
		t.Errorf("the copy has sent %d webhooks", n)
	}

	said, err := copied.command("admin", "take-over").CombinedOutput()
	if err != nil || !strings.Contains(string(said), "stop it first") {
		t.Fatalf("take-over: %v\n%s", err, said)
	}
	waitFor(t, "what the copy waited to send", func() bool { return receiver.told("/copy", silent) })
	if f := live.fence(); f.Status != "own" || f.Epoch != 1 {
		t.Errorf("the live venue's fence is %+v", f)
	}
	if !live.keyIsThere(asked) || !asked.readBy(live) {
		t.Error("the live venue's key is gone")
	}
}

func copyOfAVenue(t *testing.T, backUp func(live, copied *venue)) {
	t.Helper()
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	t.Parallel()
	receiver := newWebhookReceiver(t)
	common := []string{"--webhook-allow", "127.0.0.0/8", "--webhook-ca", receiver.CA}
	live := newVenue(t, common...)
	copied := newVenue(t, append(common, "--key-url", blob.URLOf(filepath.Join(live.dir, "keys")))...)
	began := time.Now()
	live.start()
	t.Cleanup(live.stop)
	// The law has data kept for longer than a backup takes, with a stop and a start, and until the hold that follows it.
	retained := 30*time.Second + 3*time.Since(began)
	hook := live.registerWebhook(receiver, "/")
	held, asked := live.register("Hoatzin-1"), live.register("Kakapo-2")
	live.must(200, "operator", http.MethodPut, "/admin/v1/retention", fmt.Sprintf(`{"seconds":%d}`, retained/time.Second))
	held.erase() // due when it has been kept so long
	if own := live.fence(); own.Status != "own" || own.Epoch != 1 || own.Command != "" {
		t.Fatalf("the live venue's fence is %+v", own)
	}
	liveToken := live.token("operator")

	backUp(live, copied)
	live.must(200, "operator", http.MethodPost, held.path("/admin/v1", "/hold"), `{"reason":"a court asked for it"}`)
	copied.start()
	t.Cleanup(copied.stop)

	isFenced(t, copied)
	_, diagnosed := copied.outcome(nil, "doctor", "--key-url", blob.URLOf(filepath.Join(live.dir, "keys")))
	if !doctorSays(diagnosed, "warn", "fence", "perpetua admin take-over --data "+copied.dir+" --key-url ") {
		t.Errorf("doctor says of a fenced venue\n%s", diagnosed)
	}
	tokensOfTwoVenues(t, live, copied, liveToken)

	// What the copy's own log has erased keeps its key.
	copied.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	onCopy := &subject{venue: copied, kind: asked.kind, id: asked.id, mark: asked.mark}
	onCopy.erase()
	copiedHook := copied.registerWebhook(receiver, "/copy")
	silent := copied.ping(copiedHook)
	for _, s := range []*subject{held, asked} {
		waitFor(t, "the erasure of "+s.mark+" in the copy's log", func() bool {
			return (&subject{venue: copied, kind: s.kind, id: s.id}).certificate(copied)["erased_at"] != nil
		})
	}
	if c := held.certificate(live); c["erased_at"] != nil {
		t.Errorf("the live venue has erased whom it holds: %v", c)
	}
	known := live.ping(hook) // as long as a delivery takes
	waitFor(t, "a delivery of the live venue", func() bool { return receiver.told("/", known) })
	for _, s := range []*subject{held, asked} {
		if !live.keyIsThere(s) || !s.readBy(live) {
			t.Errorf("the live venue's key of %s is gone", s.mark)
		}
	}
	if n := len(receiver.came("/copy", 0)); n > 0 {
		t.Errorf("the copy has sent %d webhooks", n)
	}

	// The copy takes over.
	socket := livetest.Dial(t, live.WebSocket, liveToken)
	socket.Subscribe("orders")
	said, err := copied.command("admin", "take-over", "--key-url", blob.URLOf(filepath.Join(live.dir, "keys"))).CombinedOutput()
	if err != nil {
		t.Fatalf("take-over: %v\n%s", err, said)
	}
	waitFor(t, "the copy to act", func() bool { return copied.fence().Status == "own" })
	// The copy waits less than 30 s, after which the token would be verified anyway.
	if !slices.ContainsFunc(socket.Messages(), func(m livetest.Message) bool { return m.Code == "AUTHENTICATION_REQUIRED" }) {
		t.Error("a socket of the live venue reads on although the copy acts")
	}
	waitFor(t, "the venue before it to stop", func() bool { return live.fence().Status == "fenced" })
	if now := copied.fence(); now.Epoch != 2 {
		t.Errorf("the copy's fence is %+v", now)
	}
	copied.tokens, live.tokens = make(map[string]string), make(map[string]string)
	setPassword(copied, "operator", copied.password("operator"))
	waitFor(t, "tokens of the copy", func() bool {
		a, err := copied.tryLogin("broker-a", copied.password("broker-a"))
		return err == nil && a.Status == 200
	})
	waitFor(t, "what the copy waited to send", func() bool { return receiver.told("/copy", silent) })
	waitFor(t, "the destruction of a key that nobody holds", func() bool { return onCopy.certificate(copied)["key_id"] != nil })
	if live.keyIsThere(asked) || !live.keyIsThere(held) {
		t.Errorf("the key that was erased is there: %v; the one that is held: %v", live.keyIsThere(asked), live.keyIsThere(held))
	}

	// The old venue has stopped.
	waitFor(t, "tokens of the old venue", func() bool {
		a, err := live.tryLogin("operator", live.password("operator"))
		return err == nil && a.Status == 200
	})
	isFenced(t, live)
	if a := live.do("operator", http.MethodPost, held.path("/admin/v1", "/release-hold"), `{"reason":"no more"}`); a.code() != "FENCED" {
		t.Errorf("the old venue releases a hold: %d %s", a.Status, a.Body)
	}
	live.ping(live.registerWebhook(receiver, "/late"))
	barrier := copied.ping(copiedHook)
	waitFor(t, "a delivery of the new venue", func() bool { return receiver.told("/copy", barrier) })
	if n := len(receiver.came("/late", 0)); n > 0 {
		t.Errorf("the old venue has sent %d webhooks", n)
	}
	if a := live.do("", http.MethodGet, "/v1/orders", nil, "Authorization", "Bearer "+liveToken); a.Status != 401 {
		t.Errorf("a token from before the take-over is good at the old venue: %d", a.Status)
	}

	// A hold that the log of the new venue knows nothing of can be released there.
	onCopied := &subject{venue: copied, kind: held.kind, id: held.id, mark: held.mark}
	copied.must(200, "operator", http.MethodPost, onCopied.path("/admin/v1", "/release-hold"), `{"reason":"the court has decided"}`)
	waitFor(t, "the destruction of a key that was held", func() bool { return onCopied.certificate(copied)["key_id"] != nil })
}

// isFenced checks that a venue says that it is fenced, and does nothing to the key store.
func isFenced(t *testing.T, v *venue) {
	t.Helper()
	waitForWord(t, "a venue to be fenced", func() string {
		if f := v.fence(); f.Status != "fenced" || f.Epoch != 0 || f.Command != "perpetua admin take-over" {
			return fmt.Sprintf("it says %+v", f)
		}
		if said := v.output.String(); !strings.Contains(said, "FENCED") || !strings.Contains(said, "perpetua admin take-over --data "+v.dir) {
			return "its log says\n" + said
		}
		return ""
	})
	if a := v.do("broker-a", http.MethodPost, "/api/v1/persons", (&subject{kind: "person", mark: "Weka-4"}).fields()); a.Status != 503 || a.code() != "FENCED" {
		t.Errorf("a fenced venue makes a key: %d %s", a.Status, a.Body)
	}
}

// tryLogin logs in, and keeps the token if that is done.
func (v *venue) tryLogin(user, password string) (answer, error) {
	a, err := v.try("", http.MethodPost, "/auth/jwt/login", "username="+user+"&password="+password, "Content-Type", "application/x-www-form-urlencoded")
	if err == nil && a.Status == 200 {
		v.tokens[user] = a.get("access_token")
	}
	return a, err
}

// setPassword sets the password of a user, who is logged in with it from then on.
func setPassword(v *venue, user, password string) {
	v.t.Helper()
	v.tokens[user] = v.login(user, "another password")
	changed := v.must(200, user, http.MethodPatch, "/admin/v1/users/"+user, map[string]string{"password": password})
	v.tokens[user] = v.login(user, password, changed)
}

// tokensOfTwoVenues checks that neither takes the other's tokens, also after a change of a password.
func tokensOfTwoVenues(t *testing.T, live, copied *venue, liveToken string) {
	t.Helper()
	deposit := func(v *venue, token string) answer {
		return v.do("", http.MethodPost, "/admin/v1/customers/MALLORY/deposits", `{"currency":"USDC","amount":"1000000","reference_id":"1"}`, "Authorization", "Bearer "+token)
	}
	before := copied.token("operator")
	if a := copied.do("operator", http.MethodGet, "/v1/orders", nil); a.Status != 200 {
		t.Errorf("the copy refuses its own token: %d %s", a.Status, a.Body)
	}
	changed := copied.must(200, "operator", http.MethodPatch, "/admin/v1/users/operator", `{"password":"another password"}`)
	if a := copied.do("", http.MethodGet, "/v1/orders", nil, "Authorization", "Bearer "+before); a.Status != 401 {
		t.Errorf("a token outlives its password: %d %s", a.Status, a.Body)
	}
	after := copied.login("operator", "another password", changed)
	for name, token := range map[string]string{"before the change of its password": before, "after it": after} {
		if a := deposit(live, token); a.Status != 401 {
			t.Errorf("the live venue takes a token of the copy from %s: %d %s", name, a.Status, a.Body)
		}
	}
	if a := deposit(copied, liveToken); a.Status != 401 {
		t.Errorf("the copy takes a token of the live venue: %d %s", a.Status, a.Body)
	}
	if a := live.do("", http.MethodGet, "/v1/orders", nil, "Authorization", "Bearer "+liveToken); a.Status != 200 {
		t.Errorf("the live venue refuses its own token: %d %s", a.Status, a.Body)
	}
	copied.tokens["operator"] = after
}

// TestAVenueThatMovesStaysItself goes from the embedded broker to Kafka by log copy --move.
func TestAVenueThatMovesStaysItself(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	kafka := strings.Join(fake.ListenAddrs(), ",")
	v := newVenue(t)
	v.start()
	token, before := v.token("operator"), v.fence()
	if code, said := v.outcome(nil, "log", "copy", "--move", "--from", v.dir, "--to", kafka); code != exitFailed || !strings.Contains(said, "in use") {
		t.Errorf("moving a venue that runs: %d\n%s", code, said)
	}
	v.stop()
	if code, said := v.outcome(nil, "log", "copy", "--move", "--from", v.dir, "--to", filepath.Join(t.TempDir(), "x.zst")); code != exitUsage {
		t.Errorf("moving a venue into a file: %d\n%s", code, said)
	}
	copied := newVenue(t)
	v.performed("log", "copy", "--from", v.dir, "--to", copied.dir)
	if code, said := v.outcome(nil, "log", "copy", "--move", "--from", copied.dir, "--to", kafka, "--key-url", blob.URLOf(filepath.Join(v.dir, "keys"))); code != exitFailed || !strings.Contains(said, "does not hold its fence") {
		t.Errorf("moving a copy: %d\n%s", code, said)
	}
	for range 2 { // it can be repeated
		v.performed("log", "copy", "--move", "--from", v.dir, "--to", kafka)
	}
	if code, said := v.outcome(nil, "run", "--demo=false"); code != exitFailed || !strings.Contains(said, "RETIRED") || !strings.Contains(said, kafka) {
		t.Errorf("starting at the old place: %d\n%s", code, said)
	}
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+kafka)
	v.start()
	defer v.stop()
	if now := v.fence(); now != before {
		t.Errorf("moved, the fence is %+v, before %+v", now, before)
	}
	if a := v.do("", http.MethodGet, "/v1/orders", nil, "Authorization", "Bearer "+token); a.Status != 200 {
		t.Errorf("a token from before the move is refused: %d %s", a.Status, a.Body)
	}
	v.register("Kea-3")

	// The old log, if somebody uses it again all the same.
	if err := os.Remove(filepath.Join(v.dir, "kafka", "RETIRED")); err != nil {
		t.Fatal(err)
	}
	old := newVenue(t, "--key-url", blob.URLOf(filepath.Join(v.dir, "keys")))
	if err := os.Rename(filepath.Join(v.dir, "kafka"), filepath.Join(old.dir, "kafka")); err != nil {
		t.Fatal(err)
	}
	old.start()
	defer old.stop()
	isFenced(t, old)

	// On to other brokers. A suspended engine could still have a term at the old ones: it ends.
	v.stop()
	next, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	further := strings.Join(next.ListenAddrs(), ",")
	v.performed("log", "copy", "--move", "--from", kafka, "--to", further, "--key-url", blob.URLOf(filepath.Join(v.dir, "keys")))
	for _, journal := range []string{"trading", "onboarding", "identity"} {
		if last := lastValue(t, fake.ListenAddrs(), journal); !strings.Contains(last, `"log copy --move"`) || last != lastValue(t, next.ListenAddrs(), journal) {
			t.Errorf("%s ends with %s where it was, and with %s where it is", journal, last, lastValue(t, next.ListenAddrs(), journal))
		}
	}
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+further)
	v.start()
	if now := v.fence(); now != before {
		t.Errorf("moved again, the fence is %+v, before %+v", now, before)
	}
}

// lastValue returns the value of the last record of a topic.
func lastValue(t *testing.T, brokers []string, topic string) (value string) {
	t.Helper()
	kafka, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtEnd().Relative(-1)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	fetched := kafka.PollFetches(t.Context())
	if err := fetched.Err(); err != nil {
		t.Fatal(err)
	}
	fetched.EachRecord(func(r *kgo.Record) { value = string(r.Value) })
	return value
}
