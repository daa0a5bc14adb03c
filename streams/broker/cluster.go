package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/perpetua-exchange/perpetua/streams/base"
)

// ClusterPrefix is the prefix of the cluster ids of embedded brokers. The device and the inode of the data directory follow in
// hexadecimal, so a copy of the directory has another cluster id.
const ClusterPrefix = "perpetua-embedded-"

// Embedded reports whether a cluster id belongs to an embedded broker.
func Embedded(cluster string) bool { return strings.HasPrefix(cluster, ClusterPrefix) }

// clusterID returns the cluster id of the broker in a folder.
func clusterID(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s has no inode", dir)
	}
	return fmt.Sprintf("%s%x-%x", ClusterPrefix, stat.Dev, stat.Ino), nil
}

// metaFile is the file in which kfake stores the cluster id. Its content takes precedence over the option.
const metaFile = "meta.json"

// nameCluster sets the cluster id under which kfake serves a folder, even if the folder is a copy of another broker's.
// It replaces the file atomically, so that a crash leaves either the old or the new one.
func nameCluster(dir, id string) error {
	path := filepath.Join(dir, metaFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a new folder: kfake uses the option
	}
	if err != nil {
		return err
	}
	meta := make(map[string]any)
	if err := json.Unmarshal(text, &meta); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if meta["cluster_id"] == id {
		return nil
	}
	meta["cluster_id"] = id
	if text, err = json.Marshal(meta); err != nil {
		return err
	}
	return base.WriteFile(path, text)
}
