package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// uploaded returns the files that lie in the bucket for documents, whole ones and what is being written.
func (v *venue) uploaded() (paths []string) {
	v.t.Helper()
	root := filepath.Join(v.dir, blob.Folder)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, "documents"+string(filepath.Separator)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return paths
}

// TestUploads uploads a file to a venue and reads it by its link, also after the venue was killed amid another upload. What
// lies on the disk is sealed, and of the upload that was broken off the journal knows nothing.
func TestUploads(t *testing.T) {
	t.Parallel()
	v := newVenue(t, "--demo=false")
	v.start()
	t.Cleanup(v.stop)
	var person struct{ ID string }
	v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/persons", map[string]string{"external_id": "p", "first_name": "Anna", "last_name": "Ost"}).decode(t, &person)
	path := "/api/v1/persons/" + person.ID + "/documents"
	const marker = "marker-in-the-clear"
	content := "%PDF-1.4\n" + strings.Repeat(marker+"\n", 100_000) + "\nstartxref\n5\n%%EOF\n"
	v.upload(path, "a.pdf", content, "")
	paths := v.uploaded()
	if len(paths) != 1 {
		t.Fatalf("%q lies in the bucket", paths)
	}
	sealed, err := os.ReadFile(paths[0])
	if err != nil || bytes.Contains(sealed, []byte(marker)) || len(sealed) < len(content) {
		t.Errorf("%d bytes lie there, in the clear or not all (%v)", len(sealed), err)
	}
	v.read(path, content)

	c, err := net.Dial("tcp", strings.TrimPrefix(v.REST, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 10000000\r\n\r\n", path, v.token("broker-a"))
	fmt.Fprintf(c, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.pdf\"\r\n\r\n%s", content)
	waitFor(t, "some of the file to be written", func() bool { return len(v.uploaded()) == 2 })
	v.kill()
	for _, path := range v.uploaded() {
		if left, err := os.ReadFile(path); err != nil || bytes.Contains(left, []byte(marker)) {
			t.Errorf("%s is left in the clear (%v)", path, err)
		}
	}
	v.start()
	v.read(path, content)
	for _, record := range v.records("onboarding") {
		if strings.Contains(record, marker) || strings.Contains(record, "b.pdf") {
			t.Errorf("the log tells of it: %.500s", record)
		}
	}
}

// upload uploads a file, with an Idempotency-Key unless that is empty, and returns the answer.
func (v *venue) upload(path, name, content, key string) string {
	v.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	into, _ := w.CreateFormFile("file", name)
	_, _ = io.WriteString(into, content)
	_ = w.Close()
	headers := []string{"Content-Type", w.FormDataContentType()}
	if key != "" {
		headers = append(headers, "Idempotency-Key", key)
	}
	return string(v.must(http.StatusCreated, "broker-a", http.MethodPost, path, b.String(), headers...).Body)
}

// read reads the one document at a path by its link.
func (v *venue) read(path, want string) {
	v.t.Helper()
	var list struct {
		Items []struct{ ID string }
		Total int
	}
	v.must(http.StatusOK, "broker-a", http.MethodGet, path, nil).decode(v.t, &list)
	if list.Total != 1 || len(list.Items) != 1 {
		v.t.Fatalf("there are %d documents", list.Total)
	}
	var link struct{ URL string }
	v.must(http.StatusOK, "broker-a", http.MethodGet, path+"/"+list.Items[0].ID+"/download_link", nil).decode(v.t, &link)
	if at, err := url.Parse(link.URL); err != nil || "http://"+at.Host != v.REST {
		v.t.Fatalf("the link leads to %s (%v)", link.URL, err)
	}
	a, err := http.Get(link.URL)
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK || string(got) != want {
		v.t.Errorf("%d, %d bytes, %v", a.StatusCode, len(got), err)
	}
}
