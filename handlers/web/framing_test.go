package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/labstack/echo/v4"
)

// TestTwoEnds: a request with a Content-Length and a Transfer-Encoding is refused and its connection closed, however its
// bytes arrive; requests with one of them are served.
func TestTwoEnds(t *testing.T) {
	served := 0
	e := serve(t, Options{}, func(c echo.Context) error {
		b := Body(c)
		b.String("name")
		if err := b.Done(); err != nil {
			return err
		}
		served++
		return c.JSON(http.StatusCreated, map[string]string{})
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: e, ConnContext: Remember}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(Listen(l)) }()
	defer func() { server.Close(); <-done }()
	const chunked = "c\r\n{\"name\":\"x\"}\r\n0\r\n\r\n"
	request := func(headers, body string) string {
		return "POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
	}
	for name, tt := range map[string]struct {
		requests []string
		statuses []int
		closed   bool
	}{
		"a length":          {[]string{request("Content-Length: 12\r\n", `{"name":"x"}`)}, []int{201}, false},
		"chunks":            {[]string{request("Transfer-Encoding: chunked\r\n", chunked)}, []int{201}, false},
		"both":              {[]string{request("Content-Length: 12\r\nTransfer-Encoding: chunked\r\n", chunked)}, []int{400}, true},
		"in the other case": {[]string{request("transfer-ENCODING: chunked\r\nX: y\r\ncontent-length:5\r\n", chunked)}, []int{400}, true},
		"one after the other": {[]string{request("Content-Length: 12\r\n", `{"name":"x"}`), request("Transfer-Encoding: chunked\r\n", chunked)},
			[]int{201, 201}, false},
		"both at last": {[]string{request("Content-Length: 12\r\n", `{"name":"x"}`), request("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", chunked)},
			[]int{201, 400}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for i, text := range tt.requests {
				if _, err := io.WriteString(c, text); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != tt.statuses[i] {
					t.Errorf("request %d: %d %s, %v", i, resp.StatusCode, body, err)
				}
				if last := i == len(tt.requests)-1; last && resp.Close != tt.closed {
					t.Errorf("the connection closes: %v", resp.Close)
				}
			}
		})
	}
	if served != 5 {
		t.Errorf("%d requests were served", served)
	}
}

// TestHeadInPieces: what is found does not depend on where the reads end.
func TestHeadInPieces(t *testing.T) {
	for text, want := range map[string]bool{
		"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n":     true,
		"POST / HTTP/1.1\nTransfer-Encoding: chunked\nX: y\nContent-Length: 1\n\n":       true,
		"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nTransfer-Encoding: chunked\r\n\r\n": false,
		"POST / HTTP/1.1\r\nX-Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n":   false,
		"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n":         false,
		"": false,
	} {
		var whole, pieces head
		if got := whole.scan([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
		got, one := false, make([]byte, 1)
		for r := iotest.OneByteReader(strings.NewReader(text)); ; {
			n, err := r.Read(one)
			got = pieces.scan(one[:n]) || got
			if err != nil {
				break
			}
		}
		if got != want {
			t.Errorf("%q byte by byte: %v", text, got)
		}
	}
}
