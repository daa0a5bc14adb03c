package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// filing is one write of an applicant: the same bytes under the same Idempotency-Key, however often it is sent.
type filing struct {
	user                    string
	path, contentType, body string
	status                  int // of the answer
	key                     string
	event                   string // that its record holds
	sent                    int    // how often
	answer                  answer // once its outcome is known
}

// applicant is a client of the onboarding interface that takes one person or corporate after the other through an entitlement.
// Each is registered, uploads a document, asks for the entitlement and answers its questionnaire. That finishes a person's; a
// corporate's an operator approves. Whatever is not answered is sent again.
type applicant struct {
	venue func() *venue // where the next write goes
	pace  time.Duration // between two writes, where others are to make most of the load
	*cause
	name     string
	owners   int // that it has begun with
	of       string
	document string
	trigger  string
	position string // of its last write, for the other nodes
	step     int
	now      *filing // nil before it was sent
	filed    []*filing
	broken   int // uploads that may have left a file behind
}

// cause is what applicants apply for, and what they are: persons or corporates.
type cause struct {
	kind                                string
	entitlement, questionnaire, answers string
}

// steps is how many writes it takes.
func (c *cause) steps() int {
	if c.kind == "corporates" {
		return 5
	}
	return 4
}

// work files one thing after the other until stop is closed or, where stop is nil, until the venue has gone.
func (a *applicant) work(done *atomic.Int64, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		answered, gone, err := a.file()
		switch {
		case err != nil, gone && stop == nil:
			return err
		case answered:
			done.Add(1)
			<-time.After(a.pace)
		default:
			<-time.After(retryAfter)
		}
	}
}

// finish files all that the owner at hand still lacks.
func (a *applicant) finish(t *testing.T) {
	t.Helper()
	waitFor(t, "the last of "+a.name, func() bool {
		if a.now == nil && a.step == 0 {
			return true
		}
		if _, _, err := a.file(); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// file sends what comes next, or what was not answered.
func (a *applicant) file() (answered, gone bool, err error) {
	if a.now == nil {
		a.now = a.next()
	}
	f := a.now
	f.sent++
	answer, failed := f.send(a.venue(), a.position)
	upload := f.event == "document.added"
	switch {
	case failed == nil && answer.Status == f.status:
		a.took(answer)
		if upload && f.sent > 1 { // the first one's file may be the one that counts
			a.broken++
		}
		return true, false, nil
	case failed == nil && answer.Status != http.StatusServiceUnavailable && !answer.busy():
		return false, false, fmt.Errorf("%s of %s: %d: %s", f.key, a.name, answer.Status, answer.Body)
	case upload:
		a.broken++
	}
	return false, failed != nil, nil
}

func (f *filing) send(v *venue, position string) (answer, error) {
	headers := []string{"Idempotency-Key", f.key, "Content-Type", f.contentType}
	if position != "" {
		headers = append(headers, "X-Min-Log-Position", position)
	}
	return v.try(f.user, http.MethodPost, f.path, f.body, headers...)
}

// next makes the write that comes next.
func (a *applicant) next() *filing {
	f := &filing{user: "broker-a", contentType: "application/json", status: http.StatusCreated, key: fmt.Sprintf("%s-%d-%d", a.name, a.owners, a.step)}
	switch a.step {
	case 0:
		f.path, f.event = "/api/v1/"+a.kind, "owner.registered"
		f.body = fmt.Sprintf(`{"external_id":"%s-%d","first_name":"Ann","last_name":"Lee"}`, a.name, a.owners)
		if a.kind == "corporates" {
			f.body = fmt.Sprintf(`{"external_id":"%s-%d","legal_name":"Acme Ltd"}`, a.name, a.owners)
		}
	case 1:
		f.path, f.event = a.of+"/documents", "document.added"
		f.contentType = "multipart/form-data; boundary=limit"
		f.body = "--limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"passport.pdf\"\r\n\r\n%PDF-1.4\n" +
			strings.Repeat("a line of a passport\n", 5000) + "\nstartxref\n5\n%%EOF\n\r\n--limit--\r\n"
	case 2:
		f.path, f.event, f.body = a.of+"/entitlement_triggers", "entitlement_trigger.created", `{"entitlement_id":"`+a.entitlement+`"}`
	case 3:
		f.path, f.event = a.of+"/questionnaires/"+a.questionnaire+"/response", "response.added"
		f.body = strings.ReplaceAll(a.answers, "DOCUMENT", a.document)
	case 4:
		f.user, f.status, f.path = "operator", http.StatusOK, "/admin/v1/entitlement_triggers/"+a.trigger+"/approve"
		f.body = `{"code":"COMPLETE","reason":"All is there."}`
	}
	return f
}

// took takes down the answer to what was filed.
func (a *applicant) took(answer answer) {
	f := a.now
	f.answer, a.position = answer, answer.Header.Get("X-Log-Position")
	a.filed, a.now = append(a.filed, f), nil
	switch a.step {
	case 0:
		a.of = "/api/v1/" + a.kind + "/" + answer.get("id")
	case 1:
		a.document = answer.get("id")
	case 2:
		a.trigger = answer.get("id")
	}
	if a.step = (a.step + 1) % a.steps(); a.step == 0 {
		a.owners++
	}
}

// again sends once more what was sent more than once, and the last of the rest. It is answered as it was.
func (a *applicant) again(t *testing.T) {
	t.Helper()
	for i, f := range a.filed {
		if f.sent == 1 && i < len(a.filed)-a.steps() {
			continue
		}
		var repeated answer
		waitFor(t, "an answer to "+f.key, func() bool {
			var err error
			repeated, err = f.send(a.venue(), a.position)
			return err == nil && repeated.Status != http.StatusServiceUnavailable
		})
		if repeated.Status != f.answer.Status || string(repeated.Body) != string(f.answer.Body) {
			t.Errorf("%s was answered %s, and then %d %s", f.key, f.answer.Body, repeated.Status, repeated.Body)
		}
		if f.event == "document.added" {
			a.broken++
		}
	}
}

// admission is applicants at work on one entitlement, and the receiver that is told of it.
type admission struct {
	*intake
	applicants []*applicant
	done       atomic.Int64
	failed     atomic.Bool // one of them has given up
}

// admissionHook is where the receiver is told.
const admissionHook = "/admission"

// settings are those by which a venue may tell a receiver on this machine, and soon tells it again what did not arrive.
func (r *webhookReceiver) settings() []string {
	return []string{"PERPETUA_WEBHOOK_CA=" + r.CA, "PERPETUA_WEBHOOK_ALLOW=127.0.0.0/8", "PERPETUA_WEBHOOK_RETRIES=" + strings.Repeat("1s,", 20) + "1s"}
}

// admit has applicants apply for entitlements that open a trading account: for persons, for corporates, and so on. A running
// node makes the entitlements, and each applicant files where at says.
func admit(t *testing.T, hooks *webhookReceiver, v *venue, count int, at func(i int) func() *venue) *admission {
	t.Helper()
	m := &admission{intake: &intake{reading: &reading{desk: &desk{venue: v}}, hooks: hooks}}
	causes := []*cause{m.cause("person", "automatic"), m.cause("corporate", "manual")}
	m.subscribe(admissionHook, "")
	for i := range count {
		m.applicants = append(m.applicants, &applicant{venue: at(i), cause: causes[i%len(causes)], name: fmt.Sprintf("P%d", i), position: m.onboarded})
	}
	return m
}

// cause makes an entitlement and the questionnaire that it asks for.
func (m *admission) cause(owner, approval string) *cause {
	m.t.Helper()
	asked := m.questionnaire("the "+owner, owner, "", []question{{value: "name", kind: "text"}, {value: "passport", kind: "document"}})
	return &cause{kind: owner + "s", questionnaire: asked, entitlement: m.entitlement("Trading of a "+owner, owner, approval, `,"opens_trading_account":true`, asked),
		answers: m.answers(asked, "name", `"Ann"`, "passport", `"DOCUMENT"`)}
}

// begin has the applicants work until what it returns is called, which waits for them.
func (m *admission) begin(t *testing.T) (end func()) {
	t.Helper()
	stop, problems := make(chan struct{}), make(chan error, len(m.applicants))
	for _, a := range m.applicants {
		go func() {
			err := a.work(&m.done, stop)
			if err != nil {
				m.failed.Store(true)
			}
			problems <- err
		}()
	}
	return sync.OnceFunc(func() {
		close(stop)
		for range m.applicants {
			if err := <-problems; err != nil {
				t.Error(err)
			}
		}
	})
}

// more waits until n more writes have been answered.
func (m *admission) more(t *testing.T, n int64) {
	t.Helper()
	enough := m.done.Load() + n
	waitFor(t, "applications under load", func() bool { return m.done.Load() >= enough || m.failed.Load() })
}

// finish has each applicant finish with its last person, and file again what was filed. All they did is acknowledged then.
func (m *admission) finish(t *testing.T) {
	t.Helper()
	for _, a := range m.applicants {
		a.finish(t)
		a.again(t)
	}
}

// filed returns the ids that were acknowledged, by the type of the event.
func (m *admission) filed(event string) (ids []string) {
	for _, a := range m.applicants {
		for _, f := range a.filed {
			if f.event == event {
				ids = append(ids, f.answer.get("id"))
			}
		}
	}
	slices.Sort(ids)
	return ids
}
