package onboarding_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// send uploads a file of a name with fields, whose names and values alternate. Headers follow after "".
func (h *house) send(user, path, name string, content []byte, more ...string) *tradingtest.Reply {
	h.T.Helper()
	return h.sendWith("boundary", user, path, name, content, more...)
}

func (h *house) sendWith(boundary, user, path, name string, content []byte, more ...string) *tradingtest.Reply {
	h.T.Helper()
	fields, headers := more, []string(nil)
	if i := slices.Index(more, ""); i >= 0 {
		fields, headers = more[:i], more[i+1:]
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary(boundary)
	for i := 0; i < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	into, _ := w.CreateFormFile("file", name)
	_, _ = into.Write(content)
	_ = w.Close()
	return h.Send(user, "POST", path+"/documents", b.String(), append([]string{"Content-Type", w.FormDataContentType()}, headers...)...)
}

// bucket returns the keys of what lies in the bucket.
func (h *house) bucket() (keys []string) {
	h.T.Helper()
	for it := h.Bucket.List(&gocloud.ListOptions{Prefix: "documents/"}); ; {
		o, err := it.Next(h.T.Context())
		if errors.Is(err, io.EOF) {
			return keys
		}
		if err != nil {
			h.T.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
}

// linked returns the path and query of a link to a document's file.
func (h *house) linked(user, one string) string {
	h.T.Helper()
	link, err := url.Parse(h.Send(user, "GET", one+"/download_link", "").Want(200).Text("url"))
	if err != nil {
		h.T.Fatal(err)
	}
	return link.RequestURI()
}

func TestAFileIsUploadedAndReadAgain(t *testing.T) {
	h := newHouse(t)
	for _, path := range []string{h.person("p"), h.corporate("c")} {
		ref := h.refOf(path)
		made := h.send("broker-a", path, `C:\scans\Übersicht "1".jpg`, formattest.JPEG(), "category", "id_document", "orientation", "front", "valid_until", "2031-05-01T02:00:00+02:00").Want(201)
		for member, want := range map[string]string{"category": "id_document", "orientation": "front", "name": `Übersicht "1".jpg`, "owner_type": string(ref.Type),
			"owner_id": ref.ID.String(), "valid_until": "2031-05-01T00:00:00.000000Z", "source": h.bucket()[len(h.bucket())-1]} {
			if got := made.Text(member); got != want && member != "source" {
				t.Errorf("%s is %q, want %q", member, got, want)
			}
		}
		one := path + "/documents/" + made.Text("id")
		if !slices.Contains(h.bucket(), made.Text("source")) {
			t.Errorf("source is %q, and in the bucket lies %q", made.Text("source"), h.bucket())
		}
		if got := h.Send("broker-a", "GET", one, "").Want(200); got.Body != made.Body {
			t.Errorf("it is read as %s", got.Body)
		}
		second := h.send("broker-a", path, "b.csv", []byte("a,b\n1,2\n"), "category", "bank_statment").Want(201) //nolint:misspell // as it is sent
		list := h.Send("operator", "GET", path+"/documents?size=1", "").Want(200)
		if !strings.Contains(list.Body, second.Text("id")) || !strings.Contains(list.Body, `"total":2,"page":1,"size":1,"pages":2`) || !strings.Contains(second.Body, `"valid_until":null`) {
			t.Errorf("%s, %s", list.Body, second.Body)
		}
		link := h.linked("broker-a", one)
		file := h.Send("", "GET", link, "").Want(200)
		if file.Body != string(formattest.JPEG()) {
			t.Errorf("%d other bytes come back", len(file.Body))
		}
		for name, want := range map[string]string{"Content-Type": "image/jpeg", "X-Content-Type-Options": "nosniff", "Accept-Ranges": "none",
			"Content-Disposition": `attachment; filename="_bersicht _1_.jpg"; filename*=UTF-8''%C3%9Cbersicht%20%221%22.jpg`,
			"Cache-Control":       "private, no-store", "Content-Security-Policy": "default-src 'none'; sandbox"} {
			if got := file.Header.Get(name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
		head := httptest.NewRecorder()
		h.Server.ServeHTTP(head, httptest.NewRequest("HEAD", link, nil))
		if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") != file.Header.Get("Content-Length") {
			t.Errorf("HEAD: %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
		}
	}
}

// TestLinks changes links, follows those of a copy, and lets them grow old.
func TestLinks(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	one := path + "/documents/" + h.send("broker-a", path, "a.pdf", formattest.PDF()).Want(201).Text("id")
	other := h.send("broker-a", path, "b.pdf", formattest.PDF()).Want(201).Text("id")
	link := h.linked("broker-a", one)
	if got := h.Send("broker-a", "GET", one+"/download_link", "").Want(200); !strings.Contains(got.Body, `"expires_in":900}`) {
		t.Errorf("%s", got.Body)
	}
	at, query, _ := strings.Cut(link, "?")
	changed := func(name, value string) string {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		values.Set(name, value)
		return at + "?" + values.Encode()
	}
	for name, bad := range map[string]string{"another document": strings.Replace(link, at, at[:strings.LastIndexByte(at, '/')+1]+other, 1),
		"no document": strings.Replace(link, at, at[:strings.LastIndexByte(at, '/')+1]+nothing, 1), "no id": "/api/v1/files/x?" + query, "no query": at,
		"a later end": changed("expires", "99999999999"), "another position": changed("at", "0"), "no number": changed("expires", "soon"),
		"an operator's": changed("restricted", "true"), "another signature": changed("signature", strings.Repeat("A", 43)), "no signature": changed("signature", ""),
		"a signature with more behind it": link + "A", "a line break behind it": link + "%0A", "one more parameter": link + "&x=1", "a past record": link + "&as_of=onboarding/0@1", "all of them twice": link + "&" + query,
		"another spelling of its end": strings.Replace(link, "expires=", "expires=0", 1), "its end with a sign": strings.Replace(link, "expires=", "expires=%2B", 1),
		"nobody's": link + "&restricted=false"} {
		if status := h.Send("broker-a", "GET", bad, "").Status; status != 403 {
			t.Errorf("%s: %d", name, status)
		}
	}
	h.Audience = "a copy of the venue"
	h.Send("", "GET", link, "").Detail(403, "Forbidden")
	elsewhere := h.linked("operator", one)
	h.Audience = "" // the venue does not know yet which one it is
	h.Send("", "GET", link, "").Detail(503, "SOURCE_UNAVAILABLE")
	h.Send("operator", "GET", one+"/download_link", "").Detail(503, "SOURCE_UNAVAILABLE")
	h.Audience = "a venue, epoch 1"
	h.Send("", "GET", elsewhere, "").Detail(403, "Forbidden")
	h.Advance(899 * scalar.Second)
	h.Send("", "GET", link, "").Want(200)
	h.Advance(scalar.Second)
	h.Send("", "GET", link, "").Detail(403, "Forbidden")
	mine, operators := h.linked("broker-a", one), ""
	h.Send("operator", "POST", strings.Replace(path, api, admin, 1)+"/erase", `{"reason":"r"}`).Want(200) // kept for years: restricted until then
	h.Onboarding.Drain()
	h.Send("", "GET", mine, "").Detail(404, "DOCUMENT_NOT_FOUND")
	operators = h.linked("operator", one)
	if got := h.Send("", "GET", operators, "").Want(200); got.Body != string(formattest.PDF()) {
		t.Errorf("%d bytes for an operator", len(got.Body))
	}
	for _, what := range []string{"", "/download_link"} {
		h.Send("broker-a", "GET", one+what, "").Detail(404, "PERSON_NOT_FOUND")
		h.Send("auditor", "GET", one+what, "").Detail(404, "PERSON_NOT_FOUND")
	}
	h.send("broker-a", path, "a.pdf", formattest.PDF()).Detail(404, "PERSON_NOT_FOUND")
	if n := len(h.bucket()); n != 2 {
		t.Errorf("%d files lie there", n)
	}
}

// TestWhoMayNot asks on behalf of everybody who may not, on each route.
func TestWhoMayNotSeeDocuments(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	id := h.send("broker-a", path, "a.pdf", formattest.PDF()).Want(201).Text("id")
	for _, what := range []string{"/documents", "/documents/" + id, "/documents/" + id + "/download_link", "/export"} {
		h.Send("broker-b", "GET", path+what, "").Detail(404, "PERSON_NOT_FOUND")
		h.Send("broker-a", "GET", strings.Replace(path, "persons", "corporates", 1)+what, "").Detail(404, "CORPORATE_NOT_FOUND")
		h.Send("", "GET", path+what, "").Detail(401, "Unauthorized")
		h.Send("client-o", "GET", path+what, "").Detail(403, "Forbidden")
		h.Send("auditor", "GET", path+what, "").Want(200)
	}
	another := h.person("q")
	for _, what := range []string{"", "/download_link"} {
		h.Send("broker-a", "GET", another+"/documents/"+id+what, "").Detail(404, "DOCUMENT_NOT_FOUND")
		if got := h.Send("broker-a", "GET", path+"/documents/x"+what, "").Details(); !slices.Equal(got, []string{"uuid_parsing path.document_id"}) {
			t.Errorf("%q", got)
		}
	}
	h.send("broker-b", path, "a.pdf", []byte("no PDF")).Detail(404, "PERSON_NOT_FOUND") // before what is wrong with the file
	h.send("operator", path, "a.pdf", formattest.PDF()).Detail(403, "Forbidden")
	h.send("", path, "a.pdf", formattest.PDF()).Detail(401, "Unauthorized")
	if n := len(h.bucket()); n != 1 {
		t.Errorf("%d files lie there", n)
	}
}

func TestAnUploadIsRepeated(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	upload := func(boundary, name string, content []byte, fields ...string) *tradingtest.Reply {
		return h.sendWith(boundary, "broker-a", path, name, content, append(fields, "", "Idempotency-Key", "k")...)
	}
	first := upload("one", "a.pdf", formattest.PDF(), "category", "poa").Want(201)
	if again := upload("two", "a.pdf", formattest.PDF(), "category", "poa").Want(201); again.Body != first.Body {
		t.Errorf("the same again is answered %s", again.Body)
	}
	for name, r := range map[string]*tradingtest.Reply{"another file": upload("one", "a.pdf", append(formattest.PDF(), '\n'), "category", "poa"),
		"another name": upload("one", "b.pdf", formattest.PDF(), "category", "poa"), "another category": upload("one", "a.pdf", formattest.PDF(), "category", "cv"),
		"no category": upload("one", "a.pdf", formattest.PDF())} {
		if r.Status != 422 || r.Text("detail") != "IDEMPOTENCY_KEY_REUSED" {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	other := h.person("q")
	h.send("broker-a", other, "a.pdf", formattest.PDF(), "category", "poa", "", "Idempotency-Key", "k").Detail(422, "IDEMPOTENCY_KEY_REUSED")
	if keys := h.bucket(); !slices.Equal(keys, []string{first.Text("source")}) {
		t.Errorf("%q lies there", keys)
	}
	if got := h.send("broker-a", path, "a.pdf", formattest.PDF(), "", "Idempotency-Key", "bad key").Details(); !slices.Equal(got, []string{"value_error header.Idempotency-Key"}) {
		t.Errorf("%q", got)
	}
}

// TestAFileOfNoRecordIsDiscarded has the journal take no document, in every way.
func TestAFileOfNoRecordIsDiscarded(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	for name, test := range map[string]struct {
		fault error
		left  int
	}{
		"never decided": {&submit.NotAcceptedError{}, 0},
		"refused":       {&submit.RefusedError{Refusal: decide.Refuse(decide.Conflict, "DOCUMENT_ID_TAKEN", "x")}, 0},
		"unknown":       {&submit.OutcomeUnknownError{}, 1}, // it may be in a record yet: its file stays until that is known
	} {
		h.Fail(func(c decide.Command) error {
			if c.Type == domain.CommandAddDocument {
				return test.fault
			}
			return nil
		})
		if r := h.send("broker-a", path, "a.pdf", formattest.PDF()); r.Status < 400 || len(h.bucket()) != test.left {
			t.Errorf("%s: %d %s, and %q lies there", name, r.Status, r.Body, h.bucket())
		}
		for _, key := range h.bucket() {
			if err := h.Bucket.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWhichFilesAreNeeded sweeps what no document names, and what is of an owner who is erased.
func TestWhichFilesAreNeeded(t *testing.T) {
	h := newHouse(t)
	path, leaves := h.person("p"), h.person("q")
	kept, erased := h.send("broker-a", path, "a.pdf", formattest.PDF()).Want(201).Text("source"), h.send("broker-a", leaves, "b.pdf", formattest.PDF()).Want(201).Text("source")
	sweeper := files.Sweeper{Store: files.New(h.Bucket, h.Owners, ""), Journal: onboarding.FilesOf(h.Onboarding, h), Age: time.Nanosecond}
	if n, err := sweeper.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d files are removed, %v", n, err)
	}
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":0}`).Want(200)
	h.Send("operator", "POST", strings.Replace(leaves, api, admin, 1)+"/erase", `{"reason":"r"}`).Want(200)
	h.Onboarding.Drain()
	orphan := kept[:len(kept)-12] + "0000" + kept[len(kept)-8:] // of the same time, and in the same folder
	if err := h.Bucket.Copy(t.Context(), orphan, kept, nil); err != nil {
		t.Fatal(err)
	}
	h.Fail(func(decide.Command) error { return &submit.NotAcceptedError{} })
	if n, err := sweeper.Sweep(t.Context()); n != 0 || err == nil {
		t.Errorf("%d files are removed while nobody knows what is on its way, %v", n, err)
	}
	h.Fail(nil)
	if n, err := sweeper.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("%d files are removed, %v", n, err)
	}
	if keys := h.bucket(); !slices.Equal(keys, []string{kept}) {
		t.Errorf("%q lies there, not %q and not %q", keys, kept, erased)
	}
}

// TestAnEndIsToldOfOnce moves the clock to shortly before a document's end.
func TestAnEndIsToldOfOnce(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	until := tradingtest.Start.Add(40 * 24 * time.Hour)
	id := h.send("broker-a", path, "a.pdf", formattest.PDF(), "category", "id_document", "valid_until", until.Format(time.RFC3339)).Want(201).Text("id")
	told := func() (bodies []domain.Body) {
		h.Onboarding.Drain()
		for _, e := range h.Onboarding.Entries() {
			for _, event := range e.Record.Events {
				if n, ok := event.(*domain.NoticeGiven); ok {
					b, err := n.Body("")
					if err != nil {
						t.Fatal(err)
					}
					bodies = append(bodies, b)
				}
			}
		}
		return bodies
	}
	h.Advance(10*scalar.Day - scalar.Hour)
	if n := len(told()); n != 0 {
		t.Errorf("%d were told before", n)
	}
	h.Advance(scalar.Hour)
	bodies := told()
	if len(bodies) != 1 {
		t.Fatalf("%d were told", len(bodies))
	}
	text, err := json.Marshal(bodies[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":"documentExpiring"`, `"document_id":"` + id + `"`, `"category":"id_document"`, `"valid_until":"` + until.UTC().Format("2006-01-02T15:04:05.000000Z") + `"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if strings.Contains(string(text), "entitlement") {
		t.Errorf("it is about no trigger: %s", text)
	}
	h.Advance(60 * scalar.Day)
	if n := len(told()); n != 1 {
		t.Errorf("%d were told in the end", n)
	}
}

func TestTheExport(t *testing.T) {
	h := newHouse(t)
	path := h.person("the tenant's own name")
	a := h.send("broker-a", path, "Pass:port.pdf", formattest.PDF(), "category", "id_document").Want(201).Text("id")
	b := h.send("broker-a", path, "b.png", formattest.PNG()).Want(201).Text("id")
	h.send("broker-a", h.person("another"), "c.png", formattest.PNG()).Want(201)
	got := h.Send("broker-a", "GET", path+"/export", "").Want(200)
	if got.Header.Get("Content-Type") != "application/zip" || got.Header.Get("Content-Disposition") == "" {
		t.Errorf("%v", got.Header)
	}
	parts := unzipped(t, got.Body)
	if len(parts) != 8 {
		t.Errorf("%d parts", len(parts))
	}
	for name, want := range map[string]string{"person.json": `"external_id": "the tenant's own name"`, "responses.json": "[]", "entitlement_triggers.json": "[]", "events.json": "[]",
		"deliveries.json": "[]", "documents.json": `"file": "files/` + a + `/Pass_port.pdf"`, "files/" + a + "/Pass_port.pdf": string(formattest.PDF()), "files/" + b + "/b.png": string(formattest.PNG())} {
		if !strings.Contains(parts[name], want) {
			t.Errorf("%s: %.300q", name, parts[name])
		}
	}
	head := httptest.NewRecorder()
	r := httptest.NewRequest("HEAD", path+"/export", nil)
	r.Header.Set("Authorization", "Bearer "+h.Token("broker-a"))
	if err := h.Bucket.Delete(t.Context(), h.bucket()[0]); err != nil { // nothing of it is read
		t.Fatal(err)
	}
	h.Server.ServeHTTP(head, r)
	if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Disposition") != got.Header.Get("Content-Disposition") {
		t.Errorf("HEAD: %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
	}
}

// TestNamesInAnExport: every system can unpack what is in it, whatever the files were called.
func TestNamesInAnExport(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	long := strings.Repeat("日", 250)
	var want []string
	for name, safe := range map[string]string{long + ".pdf": strings.Repeat("日", 58) + ".pdf", long: strings.Repeat("日", 60), "a. . ": "a", "... ": "file", "Aux.tar.pdf": "_Aux.tar.pdf",
		"con": "_con", "console.pdf": "console.pdf", `a<b>?*|".pdf`: "a_b____" + "_.pdf", "a." + long: "a." + strings.Repeat("日", 59)} {
		id := h.send("broker-a", path, name, formattest.PDF()).Want(201).Text("id")
		want = append(want, "files/"+id+"/"+safe)
	}
	got := unzipped(t, h.Send("broker-a", "GET", path+"/export", "").Want(200).Body)
	for _, name := range want {
		if got[name] != string(formattest.PDF()) {
			t.Errorf("there is no %s among %q", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// TestWhyAnOwnerIsKept: operators and auditors are told in the export, the owner's tenant is not.
func TestWhyAnOwnerIsKept(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	operated := strings.Replace(path, api, admin, 1)
	h.Send("operator", "POST", operated+"/hold", `{"reason":"A court asks"}`).Want(200)
	for user, told := range map[string]bool{"broker-a": false, "operator": true, "auditor": true} {
		got, there := unzipped(t, h.Send(user, "GET", path+"/export", "").Want(200).Body)["keeping.json"]
		if there != told || told && (!strings.Contains(got, `"reason": "A court asks"`) || !strings.Contains(got, `"actor": "operator"`) || !strings.Contains(got, `"erasure": null`)) {
			t.Errorf("%s is told %q", user, got)
		}
	}
	h.Send("operator", "POST", operated+"/erase", `{"reason":"They left"}`).Want(200)
	h.Send("operator", "POST", operated+"/release-hold", `{"reason":"It asks no more"}`).Want(200)
	got := unzipped(t, h.Send("operator", "GET", operated+"/export", "").Want(200).Body)["keeping.json"]
	for _, want := range []string{`"held": false`, `"reason": "It asks no more"`, `"reason": "They left"`, `"retain_until": "20`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}

// unread is an answer whose client reads nothing until it is let.
type unread struct {
	*httptest.ResponseRecorder
	begun, let chan struct{}
}

func (u *unread) Write(b []byte) (int, error) {
	select {
	case u.begun <- struct{}{}:
	default:
	}
	<-u.let
	return u.ResponseRecorder.Write(b)
}

// TestWhatIsSentAtOnceIsBounded: a tenant whose clients read nothing has no more of a node than its share, and others have theirs.
func TestWhatIsSentAtOnceIsBounded(t *testing.T) {
	h := newHouse(t)
	path := h.person("p")
	link := h.linked("broker-a", path+"/documents/"+h.send("broker-a", path, "a.pdf", formattest.PDF()).Want(201).Text("id"))
	others := api + "/persons/" + h.make("broker-b", api+"/persons", anna)
	for _, test := range []struct {
		path, busy, others string
		share              int
	}{{path + "/export", "EXPORTS_BUSY", others + "/export", 4}, {link, "DOWNLOADS_BUSY", others, 64}} {
		let, ended := make(chan struct{}), make(chan struct{}, test.share)
		get := func(user, at string) *http.Request {
			r := httptest.NewRequest("GET", at, nil)
			if user != "" {
				r.Header.Set("Authorization", "Bearer "+h.Token(user))
			}
			return r
		}
		for range test.share {
			w := &unread{httptest.NewRecorder(), make(chan struct{}, 1), let}
			go func() {
				defer func() { ended <- struct{}{} }()
				h.Server.ServeHTTP(w, get("broker-a", test.path))
				if w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}()
			<-w.begun
		}
		h.Send("broker-a", "GET", test.path, "").Detail(503, test.busy)
		head := httptest.NewRecorder()
		r := get("broker-a", test.path)
		r.Method = "HEAD"
		if h.Server.ServeHTTP(head, r); head.Code != 200 {
			t.Errorf("HEAD takes a place: %d", head.Code)
		}
		h.Send("broker-b", "GET", test.others, "").Want(200)
		close(let)
		for range test.share {
			<-ended
		}
		h.Send("broker-a", "GET", test.path, "").Want(200)
	}
}

// unzipped returns the parts of a zip by their names.
func unzipped(t *testing.T, content string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	parts := make(map[string]string)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts[f.Name] = string(text)
	}
	return parts
}
