package node

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// errorLog returns the error log of an HTTP server. Most lines are about what a client sent, and no limit counts them: they are logged
// at debug level, so that clients cannot fill the log. The others begin with "http:" or report a panic.
func errorLog(l *slog.Logger) *log.Logger { return log.New(serverLines{l}, "", 0) }

// serverLines logs each line that an HTTP server writes.
type serverLines struct{ log *slog.Logger }

// Write implements io.Writer.
func (s serverLines) Write(line []byte) (int, error) {
	text, level := strings.TrimSuffix(string(line), "\n"), slog.LevelDebug
	switch {
	case strings.HasPrefix(text, "http: panic serving "), strings.HasPrefix(text, "http2: panic serving "):
		level = slog.LevelError
	case strings.HasPrefix(text, "http: "): // such as an error of the listener, or of TLS on the port for other nodes
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, "the HTTP server reports an error", "error", text)
	return len(line), nil
}
