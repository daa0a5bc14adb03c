package rest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// TestTwoEnds: a request with a Content-Length and a Transfer-Encoding is refused and its connection closed, however its
// bytes arrive; requests with one of them are served.
func TestTwoEnds(t *testing.T) {
	served := 0
	e := serve(t, Options{}, func(c echo.Context) error {
		b := BodyOnly(c)
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
	server := &http.Server{Handler: e}
	Watch(server)
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(Listen(l, 1000, func() {})) }()
	defer func() { server.Close(); <-done }()
	const looksLikeBoth = "\n\nContent-Length: 1\nTransfer-Encoding: chunked\n\n{}"
	const chunked = "c\r\n{\"name\":\"x\"}\r\n0\r\n\r\n"
	request := func(headers, body string) string {
		return "POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
	}
	for name, tt := range map[string]struct {
		requests  []string
		statuses  []int
		closed    bool
		ambiguous bool // the last of them
	}{
		"both, sent together with one before": {[]string{request("Transfer-Encoding: chunked\r\n", chunked) +
			request("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", chunked), ""}, []int{201, 400}, true, true},
		"both behind what the server might answer alone": {[]string{"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" +
			request("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", chunked), ""}, []int{404, 400}, true, true},
		"chunks, and what is not understood behind them": {[]string{request("Transfer-Encoding: chunked\r\n", chunked) +
			request("Transfer-Encoding: gzip\r\n", ""), ""}, []int{201, 501}, true, false},
		"chunks that are none": {[]string{request("Transfer-Encoding: chunked\r\n", "what\r\n")}, []int{400}, true, false},
		"a length":             {[]string{request("Content-Length: 12\r\n", `{"name":"x"}`)}, []int{201}, false, false},
		"chunks":               {[]string{request("Transfer-Encoding: chunked\r\n", chunked)}, []int{201}, false, false},
		"both":                 {[]string{request("Content-Length: 12\r\nTransfer-Encoding: chunked\r\n", chunked)}, []int{400}, true, true},
		"in the other case":    {[]string{request("transfer-ENCODING: chunked\r\nX: y\r\ncontent-length:5\r\n", chunked)}, []int{400}, true, true},
		"one after the other": {[]string{request("Content-Length: 12\r\n", `{"name":"x"}`), request("Transfer-Encoding: chunked\r\n", chunked)},
			[]int{201, 201}, false, false},
		"a body that looks like both, then chunks": {[]string{request("Content-Length: "+strconv.Itoa(len(looksLikeBoth))+"\r\n", looksLikeBoth),
			request("Transfer-Encoding: chunked\r\n", chunked)}, []int{400, 201}, false, false},
		"both at last": {[]string{request("Content-Length: 12\r\n", `{"name":"x"}`), request("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", chunked)},
			[]int{201, 400}, true, true},
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
				} else if bytes.Contains(body, []byte("AMBIGUOUS_LENGTH")) != (last && tt.ambiguous) {
					t.Errorf("request %d: %s", i, body)
				}
			}
		})
	}
	if served != 8 {
		t.Errorf("%d requests were served", served)
	}
}

// TestFramingInPieces: what is found does not depend on where the reads end.
func TestFramingInPieces(t *testing.T) {
	const post, both = "POST / HTTP/1.1\r\n", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
	for text, want := range map[string]bool{
		post + both: true,
		"POST / HTTP/1.1\nTransfer-Encoding: chunked\nX: y\nContent-Length: 1\n\n":           true,
		post + "Content-Length: 1\r\n\r\nTransfer-Encoding: chunked\r\n\r\n":                 false,
		post + "X-Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n":                   false,
		post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n":                         false,
		post + "Content-Length: 5\r\n\r\nhello\r\n" + post + both:                            true,
		post + "Content-Length: 70\r\n\r\n" + post + both + strings.Repeat("x", 70):          false,
		post + "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n" + post + both: true,
		post + "Transfer-Encoding: chunked\r\n\r\n46\r\n" + post + both:                      false,
		post + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + both + post + "\r\n":              false, // both are trailers
		"POST / HTTP/1.0\r\n" + both + "x" + post + "\r\n":                                   false,
		"POST /" + strings.Repeat("x", 5000) + " HTTP/1.0\r\n" + both + "x" + post + both:    true,
		post + "Content-Length:\r\n 1\r\n\r\n":                                               true, // net/http reads the next line, too
		"":                                                                                   false,
	} {
		var whole, pieces framing
		if whole.follow([]byte(text)); (whole.part == astray) != want {
			t.Errorf("%q: %d", text, whole.part)
		}
		for i := range len(text) {
			pieces.follow([]byte{text[i]})
		}
		if (pieces.part == astray) != want {
			t.Errorf("%q byte by byte: %d", text, pieces.part)
		}
	}
}

var (
	givesLength   = regexp.MustCompile(`(?mi)^content-length:`)
	goesOn        = regexp.MustCompile(`(?m)^[ \t]`)
	givesEncoding = regexp.MustCompile(`(?mi)^transfer-encoding:`)
)

// FuzzFraming holds what is followed against net/http: as long as that reads requests, a connection has gone astray if one
// of them was chunked and gave a length, and not otherwise.
func FuzzFraming(f *testing.F) {
	const post = "POST / HTTP/1.1\r\nHost: x\r\n"
	for _, seed := range []string{
		post + "Content-Length: 3\r\n\r\nabc" + post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + post + "\r\n",
		post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n1a ;x\r\nContent-Length: 3\r\n\r\nxxxx\r\n0\r\nA: b\r\n\r\n" + post + "\r\n",
		"GET /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nab" + post + "X: y\r\n z\r\n\r\n",
		post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab" + post + "Content-Length: 007\r\n\r\n1234567" + post + "\n\n",
		post + "transfer-encoding:chunked\ncontent-length :3\n\n",
		post + "Transfer-Encoding: gzip, chunked\r\n\r\n", post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		rest := bytes.NewReader(stream)
		in := bufio.NewReader(rest)
		place := func() int { return len(stream) - rest.Len() - in.Buffered() }
		var followed framing
		ambiguous, from := false, 0
		for !ambiguous {
			begins := place()
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			head := stream[begins:place()]
			if goesOn.Match(head) {
				return // such a head is not understood, and its connection goes astray
			}
			ambiguous = len(r.TransferEncoding) > 0 && givesLength.Match(head) && givesEncoding.Match(head)
			followed.follow(stream[from:place()])
			if from = place(); (followed.part == astray) != ambiguous {
				t.Fatalf("%q gives both: %v, and is followed to %d", head, ambiguous, followed.part)
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
		}
	})
}

// TestConnectionsAreLimited: a listener accepts no more than its limit. One that is closed, also after it was hijacked, makes room for
// the next, and a listener that is full can be closed.
func TestConnectionsAreLimited(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{}, 10)
	l := Listen(inner, 2, func() { waits <- struct{}{} })
	defer l.Close()
	accepted, ended := make(chan net.Conn), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	var open []net.Conn
	for range 4 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	for range 2 {
		open = append(open, <-accepted)
	}
	<-waits
	for i, c := range open {
		if i > 0 {
			c = Hijacked(c)
		}
		select {
		case <-accepted:
			t.Fatal("a connection beyond the limit was accepted")
		default:
		}
		for range 2 { // the second time makes no further room
			c.Close()
		}
		defer (<-accepted).Close()
		<-waits
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener ends with %v", err)
	}
}
