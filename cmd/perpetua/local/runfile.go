package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// RunFile is the content of DIR/run.json: it describes the node that runs on the folder, for scripts.
type RunFile struct {
	PID         int      `json:"pid"`
	REST        string   `json:"rest"`
	WebSocket   string   `json:"websocket"`
	Kafka       []string `json:"kafka"`
	DatabaseURL string   `json:"database_url"`
	Debug       string   `json:"debug,omitempty"`   // URL of the profiles; absent if they are off
	Follows     string   `json:"follows,omitempty"` // FollowsBrokers or FollowsArchive for a follower; absent for a node of a venue
	Users       []User   `json:"users"`
}

// The sources from which a follower reads the venue's records.
const (
	FollowsBrokers = "brokers" // of the venue
	FollowsArchive = "archive" // copied to the follower's own broker
)

// WriteRunFile writes the run.json of a node or of a cluster. Only the file's owner may read it: it holds passwords.
func WriteRunFile(path string, r any) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(path, append(content, '\n'), 0o600)
}

// ReadRunFile returns the run.json of a live process that has locked the folder of the file; ok is false if there is none. In a
// copy of a folder, run.json describes the process on the original, also while another process has locked the copy. Older
// versions of `perpetua cluster` wrote a list of REST addresses: ReadRunFile returns the first.
func ReadRunFile(path string) (r RunFile, ok bool, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return RunFile{}, false, nil
	}
	if err != nil {
		return RunFile{}, false, err
	}
	var f struct {
		RunFile
		REST json.RawMessage `json:"rest"`
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return RunFile{}, false, fmt.Errorf("%s: %w", path, err)
	}
	r = f.RunFile
	var several []string
	if json.Unmarshal(f.REST, &several) == nil && len(several) > 0 {
		r.REST = several[0]
	} else if err := json.Unmarshal(f.REST, &r.REST); err != nil {
		return RunFile{}, false, fmt.Errorf("%s: %w", path, err)
	}
	if r.PID <= 0 || errors.Is(syscall.Kill(r.PID, 0), syscall.ESRCH) {
		return RunFile{}, false, nil // left by a killed process
	}
	holder, err := broker.FolderHolder(filepath.Dir(path))
	if errors.Is(err, os.ErrPermission) {
		return r, true, nil // this user may read run.json, and not the lock
	}
	if err != nil || holder != r.PID {
		return RunFile{}, false, err
	}
	return r, true, nil
}

// RemoveRunFile removes the file if it exists.
func RemoveRunFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Print prints the content of run.json for humans. path is the path of that file.
func (r RunFile) Print(w io.Writer, path string) {
	fmt.Fprintf(w, "\nPerpetua is ready (process %d)\n\n", r.PID)
	fmt.Fprintf(w, "  Console    %s/\n", r.REST)
	fmt.Fprintf(w, "  REST       %s  (reference: %s/docs)\n", r.REST, r.REST)
	fmt.Fprintf(w, "  WebSocket  %s  (reference: %s/docs/websocket)\n", r.WebSocket, r.REST)
	fmt.Fprintf(w, "  Kafka      %s\n", strings.Join(r.Kafka, ","))
	fmt.Fprintf(w, "  Postgres   %s\n\n", r.DatabaseURL)
	PrintUsers(w, r.Users)
	fmt.Fprintf(w, "\n  %s has all this as JSON. Ctrl-C stops the venue.\n", path)
}
