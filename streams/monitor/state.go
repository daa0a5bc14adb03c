package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// stateFormat is the version of the file.
const stateFormat = "perpetua-monitor@v1"

// State is the memory of a monitor.
type State struct {
	Format     string            `json:"format"`
	Checkpoint string            `json:"checkpoint"` // the largest good one; empty if there was none
	Sources    map[string]Source `json:"places"`     // by URL

	remembered *transparency.Opened
}

// Source describes the last checkpoints of a source.
type Source struct {
	Records  int64     `json:"records"`
	Cosigned int64     `json:"cosigned"` // records of its cosigned checkpoint
	Since    time.Time `json:"since"`    // when it was first seen with so many records
	// CosignedAt is the time of its last cosignature; before the first one, it is when the monitor first asked for it.
	CosignedAt time.Time `json:"cosigned_at,omitzero"`
	// UnprovenAt is when the source first served a checkpoint without the tiles that prove it; zero if the last one was proven.
	UnprovenAt time.Time `json:"unproven_at,omitzero"`
}

func (s State) clone() State {
	s.Sources = maps.Clone(s.Sources)
	if s.Sources == nil {
		s.Sources = make(map[string]Source)
	}
	s.Format = stateFormat
	return s
}

// ReadState reads the state in a file. A missing file is an empty state. The checkpoint in it must be signed as the policy asks.
func ReadState(path string, policy *transparency.Policy) (State, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}.clone(), nil
	}
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return State{}, fmt.Errorf("%s is not the file of a monitor: %w", path, err)
	}
	if s.Format != stateFormat {
		return State{}, fmt.Errorf("%s has the format %.60q, and %s is supported", path, s.Format, stateFormat)
	}
	if s.Checkpoint != "" {
		if s.remembered, err = policy.OpenRemembered([]byte(s.Checkpoint)); err != nil {
			return State{}, fmt.Errorf("%s: the remembered checkpoint: %w", path, err)
		}
	}
	return s.clone(), nil
}

// Write replaces the file.
func (s State) Write(path string) error {
	text, err := json.Marshal(s, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone if it was renamed
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
