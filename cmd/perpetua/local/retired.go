package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// retiredFile, in the broker's folder, says that the log there was moved elsewhere.
const retiredFile = "RETIRED"

// Retire marks the embedded log of the folder as moved. Services do not start on it any more; tools still read it.
func (d *Folder) Retire(to string) error {
	text := fmt.Sprintf("On %s this log was moved to the %s, where the venue goes on.\n"+
		"perpetua run and cluster refuse to start on it. To have the venue act here all the same, remove this file and enter\n"+
		"  perpetua admin take-over --data %s\n", time.Now().UTC().Format(time.RFC3339), to, d.Dir)
	if err := writeWhole(d.Path("kafka", retiredFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("mark the old log as moved: %w", err)
	}
	return nil
}

// CheckRetired returns an error if the embedded log of the folder was moved elsewhere.
func (d *Folder) CheckRetired() error {
	path := d.Path("kafka", retiredFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s says that the log is no longer here, so it is not used (with --kafka-brokers it would not be):\n%s", path, text)
}
