package settings

import (
	"io"
	"log/slog"
)

// Logger returns the logger that the settings describe.
func (s *Settings) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Log.Level)); err != nil {
		return nil, Usagef("--log-level takes debug, info, warn or error, not %q", s.Log.Level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch s.Log.Format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, Usagef("--log-format takes text or json, not %q", s.Log.Format)
}
