package main

import (
	"io"
	"log/slog"
)

// newLogger returns the logger that the settings ask for.
func newLogger(s *settings, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return nil, usagef("--log-level takes debug, info, warn or error, not %q", s.LogLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch s.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, usagef("--log-format takes text or json, not %q", s.LogFormat)
}
