package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// TestReadBody reads bodies with a length, in chunks, and cut short, and checks that one with a length is allocated once.
func TestReadBody(t *testing.T) {
	long := strings.Repeat("x", 800_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
		case "/short":
			w.Header().Set("Content-Length", strconv.Itoa(len(long)+1))
		case "/empty":
			return
		}
		_, _ = io.WriteString(w, long)
	}))
	defer s.Close()
	for path, want := range map[string]struct {
		length, capacity int
		err              error
	}{
		"/length": {len(long), len(long), nil},
		"/chunks": {len(long), 0, nil},
		"/short":  {len(long), 0, io.ErrUnexpectedEOF},
		"/empty":  {0, 0, nil},
	} {
		answer, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := readBody(answer)
		answer.Body.Close()
		if len(content) != want.length || err != want.err || want.capacity != 0 && cap(content) != want.capacity {
			t.Errorf("%s: %d bytes in %d, %v; want %+v", path, len(content), cap(content), err, want)
		}
	}
}
