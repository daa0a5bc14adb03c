package node

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// TestClientsDoNotFloodTheLog: what a client sends that is not HTTP is logged at debug level, in the form of the log.
func TestClientsDoNotFloodTheLog(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 1} {
		var out bytes.Buffer
		s := &serving{full: func() {}}
		s.handle(echo.New(), true, slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level})))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.listener = l
		done := make(chan error, 1)
		go func() { done <- s.serve() }()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		const preface, settings, data = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		if _, err := io.WriteString(c, preface+settings+data); err != nil { // data of stream 0, which does not exist
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c) // the server ends the connection
		c.Close()
		s.close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Count(got, `"msg":"the HTTP server reports an error"`) != want || strings.Count(got, "\n") != want {
			t.Errorf("at %v: %q", level, got)
		}
	}
}

func TestLevelsOfServerLines(t *testing.T) {
	for line, level := range map[string]slog.Level{
		"http: panic serving 192.0.2.1:5: nil\ngoroutine 1":               slog.LevelError,
		"http2: panic serving 192.0.2.1:5: nil\ngoroutine 1":              slog.LevelError,
		"http: Accept error: too many open files; retrying in 5ms":        slog.LevelWarn,
		"http: TLS handshake error from 192.0.2.1:5: EOF":                 slog.LevelWarn,
		"http2: server connection error from 192.0.2.1:5: PROTOCOL_ERROR": slog.LevelDebug,
		"timeout waiting for SETTINGS frames from 192.0.2.1:5":            slog.LevelDebug,
	} {
		var out bytes.Buffer
		errorLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).Print(line)
		if got := out.String(); !strings.Contains(got, "level="+level.String()+" ") || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: %s", line, got)
		}
	}
}
