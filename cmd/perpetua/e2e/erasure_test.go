package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// subject is somebody whose data carries a mark in each field, answer, reason and file.
type subject struct {
	*venue
	kind    string // person or corporate
	mark    string
	id      string
	trigger string
	asOf    string // of what is known of the subject's end; others' writes are read a moment later
}

// path returns a route of the subject, of the clients' interface or the operators'.
func (s *subject) path(base, rest string) string { return base + "/" + s.kind + "s/" + s.id + rest }

// marks are what gives the subject away wherever it stands in clear: the mark, and the values of fields that can't carry one.
func (s *subject) marks() []string {
	return []string{s.mark, strings.ToLower(s.mark), "1931-07-1" + s.digit(), "+491519876543" + s.digit()}
}

// digit tells subjects apart where a field has room for no more.
func (s *subject) digit() string { return s.mark[len(s.mark)-1:] }

// fields returns all that a client can tell of the subject.
func (s *subject) fields() map[string]any {
	m := s.mark
	address := map[string]string{"street": m + " street", "house_number": m + " 1", "postal_code": m + " 2", "city": m + " city", "region": m + " region", "country": "NIU"}
	if s.kind == "corporate" {
		return map[string]any{"external_id": m + " c", "legal_name": m + " Ltd", "legal_form": m + " form", "registration_number": m + " 3",
			"incorporation_country": "NIU", "address": address}
	}
	return map[string]any{"external_id": m + " p", "first_name": m + " first", "last_name": m + " last", "nationality": "NIU",
		"birth_date": "1931-07-1" + s.digit(), "email": strings.ToLower(m) + "@example.org", "phone": "+491519876543" + s.digit(),
		"tax_identification_number": m + " 4", "tax_country": "NIU", "address": address}
}

// catalogue has an entitlement with one questionnaire for a kind of owners, and returns their ids and the question's.
func (v *venue) catalogue(kind string) (entitlement, questionnaire, question string) {
	v.t.Helper()
	const admin = "/admin/v1/questionnaires"
	questionnaire = v.must(201, "operator", http.MethodPost, admin, map[string]string{"name": "about a " + kind, "owner_type": kind}).get("id")
	draft := `{"questions":[{"label":"Who?","value":"who","question_type":"text","position":1}]}`
	var version struct{ Questions []struct{ ID string } }
	if err := json.Unmarshal(v.must(201, "operator", http.MethodPost, admin+"/"+questionnaire+"/versions", draft).Body, &version); err != nil {
		v.t.Fatal(err)
	}
	v.must(200, "operator", http.MethodPost, admin+"/"+questionnaire+"/publish", `{"version_number":1}`)
	entitlement = v.must(201, "operator", http.MethodPost, "/admin/v1/entitlements", fmt.Sprintf(
		`{"name":"entitled %s","owner_type":%q,"approval":"manual","questionnaires":[{"questionnaire_id":%q,"position":1}]}`, kind, kind, questionnaire)).get("id")
	return entitlement, questionnaire, version.Questions[0].ID
}

// plant puts the mark wherever somebody can put anything about the subject.
func (s *subject) plant(entitlement, questionnaire, question string) {
	s.t.Helper()
	const client, admin = "/api/v1", "/admin/v1/entitlement_triggers/"
	s.id = s.must(201, "broker-a", http.MethodPost, client+"/"+s.kind+"s", s.fields()).get("id")
	s.must(200, "broker-a", http.MethodPatch, s.path(client, ""), map[string]any{"external_id": s.mark + " again"})
	s.trigger = s.must(201, "broker-a", http.MethodPost, s.path(client, "/entitlement_triggers"), map[string]string{"entitlement_id": entitlement}).get("id")
	answer := map[string]any{"answers": []any{map[string]string{"question_id": question, "answer_text": s.mark + " answers"}}}
	s.must(201, "broker-a", http.MethodPost, s.path(client, "/questionnaires/"+questionnaire+"/response"), answer)
	said := map[string]any{"code": "LOOK", "reason": s.mark + " is asked", "internal_reason": s.mark + " is doubted"}
	said["questionnaire_ids"] = []string{questionnaire}
	s.must(200, "operator", http.MethodPost, admin+s.trigger+"/request_information", said)
	delete(said, "questionnaire_ids")
	s.must(200, "operator", http.MethodPost, admin+s.trigger+"/request_video_identification", said)
	said["outcome"], said["external_reference"] = "passed", s.mark+" was seen"
	s.must(200, "operator", http.MethodPost, admin+s.trigger+"/complete_video_identification", said)
	s.upload()
}

// upload uploads a file that carries the mark in its name and its content.
func (s *subject) upload() {
	s.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="` + s.mark + `.csv"`}, "Content-Type": {"text/csv"}}
	part, err := w.CreatePart(header)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprint(part, "who,what\n", strings.Repeat(s.mark+",traded\n", 10_000))
	if err := w.WriteField("category", "trading_history"); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.must(201, "broker-a", http.MethodPost, s.path("/api/v1", "/documents"), body.String(), "Content-Type", w.FormDataContentType())
}

// reads are the reads of a client about the subject, of which each shows the mark.
func (s *subject) reads() []string {
	return []string{s.path("/api/v1", ""), s.path("/api/v1", "/responses"), s.path("/api/v1", "/documents"),
		s.path("/api/v1", "/entitlement_triggers/"+s.trigger+"/timeline")}
}

// readable checks that the tenant reads all of the subject.
func (s *subject) readable(v *venue) {
	v.t.Helper()
	for _, path := range s.reads() {
		if a := v.must(200, "broker-a", http.MethodGet, path, nil); !bytes.Contains(a.Body, []byte(s.mark)) {
			v.t.Errorf("%s of %s: %s", path, s.mark, a.Body)
		}
	}
	if details := s.told(v); !strings.Contains(details, s.mark) {
		v.t.Errorf("the feed tells of %s %s", s.mark, details)
	}
}

// after returns the header of a read that has to know what happened to the subject in its own venue.
func (s *subject) after(v *venue) []string {
	if v != s.venue || s.asOf == "" {
		return nil
	}
	return []string{"X-Min-Log-Position", s.asOf}
}

// told returns the details of what the feed tells of the subject, one behind the other.
func (s *subject) told(v *venue) string {
	v.t.Helper()
	var feed struct {
		Records []struct {
			OwnerID string `json:"owner_id"`
			Details json.RawMessage
		}
	}
	if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/api/v1/events?page_size=100", nil, s.after(v)...).Body, &feed); err != nil {
		v.t.Fatal(err)
	}
	var out string
	for _, r := range feed.Records {
		if r.OwnerID == s.id {
			out += string(r.Details)
		}
	}
	return out
}

// hidden checks that the tenant can't tell that the subject was ever there.
func (s *subject) hidden(v *venue) {
	v.t.Helper()
	for _, path := range append(s.reads(), s.path("/api/v1", "/entitlement_triggers")) {
		v.must(404, "broker-a", http.MethodGet, path, nil, s.after(v)...)
	}
	if a := v.must(200, "broker-a", http.MethodGet, "/api/v1/"+s.kind+"s", nil, s.after(v)...); bytes.Contains(a.Body, []byte(s.id)) {
		v.t.Errorf("%s is listed: %s", s.mark, a.Body)
	}
	if details := s.told(v); len(details) < 2 || strings.ReplaceAll(details, "{}", "") != "" {
		v.t.Errorf("the feed tells of %s %s", s.mark, details)
	}
}

// certificate returns what operators are shown of the subject's end.
func (s *subject) certificate(v *venue) map[string]any {
	v.t.Helper()
	var c map[string]any
	a := v.must(200, "operator", http.MethodGet, s.path("/admin/v1", "/erasure"), nil, s.after(v)...)
	if err := json.Unmarshal(a.Body, &c); err != nil {
		v.t.Fatal(err)
	}
	s.asOf = a.Header.Get("X-Log-Position")
	return c
}

// erase asks for the subject's end.
func (s *subject) erase() {
	s.t.Helper()
	s.asOf = s.must(200, "operator", http.MethodPost, s.path("/admin/v1", "/erase"), `{"reason":"as was asked"}`).Header.Get("X-Log-Position")
}

// inClear is what the log and the tables hold in clear, to see that the search finds such things.
const inClear = "entitled person"

// searched fails for each file below a folder that holds one of the marks.
func searched(t *testing.T, what string, marks []string, folder string) {
	t.Helper()
	files, clear := 0, false
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a socket, or removed meanwhile
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		files++
		clear = clear || bytes.Contains(content, []byte(inClear))
		for _, mark := range marks {
			if bytes.Contains(content, []byte(mark)) {
				t.Errorf("%s: %s holds %q", what, path, mark)
			}
		}
		return nil
	})
	if err != nil || files < 3 || !clear {
		t.Errorf("%s: searched are %d files, of which one holds what is in clear: %t (%v)", what, files, clear, err)
	}
}

// tables returns every row of every table of the venue's, as text.
func (v *venue) tables() string {
	v.t.Helper()
	ctx := v.t.Context()
	db := v.database()
	defer db.Close(ctx)
	rows, err := db.Query(ctx, `SELECT quote_ident(schemaname)||'.'||quote_ident(tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog','information_schema')`)
	if err != nil {
		v.t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			v.t.Fatal(err)
		}
		names = append(names, name)
	}
	if rows.Err() != nil || len(names) < 20 {
		v.t.Fatalf("there are the tables %v (%v)", names, rows.Err())
	}
	var out strings.Builder
	for _, name := range names {
		rows, err := db.Query(ctx, `SELECT t::text FROM `+name+` t`)
		if err != nil {
			v.t.Fatal(err)
		}
		for rows.Next() {
			var row string
			if err := rows.Scan(&row); err != nil {
				v.t.Fatal(err)
			}
			fmt.Fprintln(&out, name, row, fromHex(row))
		}
		if rows.Err() != nil {
			v.t.Fatal(rows.Err())
		}
	}
	return out.String()
}

// fromHex returns the bytes of the bytea values of a row.
func fromHex(row string) string {
	var out strings.Builder
	for _, part := range strings.Split(row, `\x`)[1:] {
		for i := 0; i+1 < len(part); i += 2 {
			var b byte
			if _, err := fmt.Sscanf(part[i:i+2], "%02x", &b); err != nil {
				break
			}
			out.WriteByte(b)
		}
	}
	return out.String()
}

// performed runs a command that has to do well.
func (v *venue) performed(args ...string) {
	v.t.Helper()
	if code, said := v.outcome(nil, args...); code != exitDone {
		v.t.Fatalf("perpetua %v exits with %d:\n%s", args, code, said)
	}
}

// TestErasure erases a person and a corporate. Nothing that was told of them is left anywhere, nor in a backup that was taken
// before and is restored beside the present key store: not since it is away, but since nobody has the key. The node is
// killed between the record of the erasure and the destruction of the key.
func TestErasure(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	t.Parallel()
	r := newWebhookReceiver(t)
	common := []string{"--snapshot-records", "10", "--webhook-allow", "127.0.0.0/8", "--webhook-ca", r.CA}
	v := newWholeVenue(t, append(common, "--role", "engine,api,projector,live,sender")...)
	v.start()
	t.Cleanup(v.stop)
	ann, acme := &subject{venue: v, kind: "person", mark: "Zebrafinch-7Q1"}, &subject{venue: v, kind: "corporate", mark: "Quetzalbird-7Q2"}
	held, restricted := &subject{venue: v, kind: "person", mark: "Hoatzinbird-7Q3"}, &subject{venue: v, kind: "person", mark: "Kakapobird-7Q4"}
	hook := v.registerWebhook(r, "/")
	for _, kind := range []string{"person", "corporate"} {
		entitlement, questionnaire, question := v.catalogue(kind)
		for _, s := range []*subject{ann, acme, held, restricted} {
			if s.kind == kind {
				s.plant(entitlement, questionnaire, question)
			}
		}
	}
	for _, s := range []*subject{ann, acme, held, restricted} {
		s.readable(v)
	}
	delivered := func(what string, is func(status string) bool) {
		t.Helper()
		waitFor(t, what, func() bool {
			var page struct{ Items []struct{ Status string } }
			if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/api/v1/webhooks/"+hook+"/deliveries?size=100", nil).Body, &page); err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Items {
				if !is(d.Status) {
					return false
				}
			}
			return len(page.Items) > 0
		})
	}
	delivered("the deliveries of all that was told", func(status string) bool { return status == "delivered" })
	marks := append(ann.marks(), acme.marks()...)

	backup, before := t.TempDir(), v.tables()
	copied := func(from, to string) {
		t.Helper()
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
	}
	v.performed("log", "copy", "--from", v.dir, "--to", filepath.Join(backup, "log.jsonl"))
	copied(filepath.Join(v.dir, "blob", "documents"), backup)
	copied(filepath.Join(v.dir, "users.json"), backup)
	keys, old := filepath.Join(v.dir, "keys"), filepath.Join(t.TempDir(), "keys") // which no backup has: to see that it would matter
	copied(keys, old)

	v.must(200, "operator", http.MethodPost, held.path("/admin/v1", "/hold"), `{"reason":"a court asked for it"}`)
	restricted.erase() // kept as the law says
	restricted.hidden(v)
	v.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	for _, s := range []*subject{ann, acme, held} {
		s.erase()
	}
	for _, s := range []*subject{ann, acme} {
		waitFor(t, "the erasure of "+s.mark, func() bool { return s.certificate(v)["erased_at"] != nil })
		if c := s.certificate(v); c["key_id"] != nil {
			t.Errorf("a node without the role has destroyed a key: %v", c)
		}
		s.hidden(v)
	}
	v.kill()

	v.args = common
	v.start()
	for _, s := range []*subject{ann, acme} {
		waitFor(t, "the destruction of the key of "+s.mark, func() bool { return s.certificate(v)["key_id"] != nil })
		s.hidden(v)
		v.must(404, "operator", http.MethodGet, s.path("/api/v1", ""), nil)
	}
	for _, s := range []*subject{held, restricted} {
		if c := s.certificate(v); c["erased_at"] != nil || c["key_id"] != nil {
			t.Errorf("%s is erased: %v", s.mark, c)
		}
		s.hidden(v)
		if a := v.must(200, "operator", http.MethodGet, s.path("/api/v1", ""), nil); !bytes.Contains(a.Body, []byte(s.mark)) {
			t.Errorf("an operator reads %s of %s", a.Body, s.mark)
		}
	}
	for when, rows := range map[string]string{"rows before": before, "rows": v.tables()} {
		if !strings.Contains(rows, inClear) {
			t.Errorf("%s: what is in clear is not found", when)
		}
		for _, mark := range marks {
			if i := strings.Index(rows, mark); i >= 0 {
				t.Errorf("%s: %q is in %q", when, mark, rows[max(0, i-100):i])
			}
		}
	}
	v.stop()
	searched(t, "the data folder", marks, v.dir)
	searched(t, "the backup", marks, backup)
	for _, tool := range [][]string{{"log", "--journal", "onboarding", "--check-all"}, {"audit"}} {
		v.performed(tool...)
	}

	for name, store := range map[string]string{"the present keys": keys, "the keys as they were": old} {
		r := newVenue(t, "--key-url", blob.URLOf(store), "--role", "engine,api,projector,live,process") // and tells nobody anything
		r.performed("log", "copy", "--from", filepath.Join(backup, "log.jsonl"), "--to", r.dir)
		if err := os.Mkdir(filepath.Join(r.dir, "blob"), 0o700); err != nil {
			t.Fatal(err)
		}
		copied(filepath.Join(backup, "documents"), filepath.Join(r.dir, "blob"))
		copied(filepath.Join(backup, "users.json"), r.dir)
		r.start()
		for _, s := range []*subject{ann, acme} {
			if store == old { // or the search was for nothing
				s.readable(r)
			} else {
				s.hiddenIn(r)
			}
		}
		held.readable(r) // whose key is there
		r.stop()
		if store != old {
			searched(t, "restored with "+name, marks, r.dir)
		}
	}
}

// hiddenIn checks that nothing of the subject can be read in a venue that does not know yet that it was erased.
func (s *subject) hiddenIn(v *venue) {
	v.t.Helper()
	v.must(404, "broker-a", http.MethodGet, s.path("/api/v1", ""), nil)
	v.must(404, "operator", http.MethodGet, s.path("/api/v1", ""), nil)
	for _, user := range []string{"broker-a", "operator"} {
		for _, path := range append(s.reads(), "/api/v1/"+s.kind+"s") {
			if a := v.do(user, http.MethodGet, path, nil); a.Status >= 500 || bytes.Contains(a.Body, []byte(s.mark)) {
				v.t.Errorf("%s reads %d %s of %s", user, a.Status, a.Body, path)
			}
		}
	}
	if details := s.told(v); strings.Contains(details, s.mark) || !strings.Contains(details, "{}") {
		v.t.Errorf("the feed tells of %s %s", s.mark, details)
	}
}
