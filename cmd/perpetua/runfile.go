package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// runFile is what DIR/run.json tells scripts of the node that runs on the folder.
type runFile struct {
	PID         int          `json:"pid"`
	REST        string       `json:"rest"`
	WebSocket   string       `json:"websocket"`
	Kafka       []string     `json:"kafka"`
	DatabaseURL string       `json:"database_url"`
	Debug       string       `json:"debug,omitempty"` // of the profiles; absent while they are off
	Users       []presetUser `json:"users"`
}

// writeRunFile writes it, or a cluster's, for the owner's eyes alone: it holds passwords.
func writeRunFile(path string, r any) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFileWhole(path, append(content, '\n'), 0o600)
}

// readRunFile returns the file of a node that is alive; ok is false where there is none. Of a cluster's several
// addresses of REST it returns the first.
func readRunFile(path string) (r runFile, ok bool, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return runFile{}, false, nil
	}
	if err != nil {
		return runFile{}, false, err
	}
	var f struct {
		runFile
		REST json.RawMessage `json:"rest"`
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return runFile{}, false, fmt.Errorf("%s: %w", path, err)
	}
	r = f.runFile
	var several []string
	if json.Unmarshal(f.REST, &several) == nil && len(several) > 0 {
		r.REST = several[0]
	} else if err := json.Unmarshal(f.REST, &r.REST); err != nil {
		return runFile{}, false, fmt.Errorf("%s: %w", path, err)
	}
	if r.PID <= 0 || errors.Is(syscall.Kill(r.PID, 0), syscall.ESRCH) {
		return runFile{}, false, nil // left behind by a kill
	}
	return r, true, nil
}
