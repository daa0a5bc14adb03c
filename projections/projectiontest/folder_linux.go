package projectiontest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// room is what must be free in memory: many times what the tests of a package ever hold at once. A container's usual 64 MiB
// are not enough.
const room = 4 << 30

// inMemory returns a folder that is kept in memory, or "" where there is none with enough room.
func inMemory() string {
	const dir = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Bavail)*fs.Bsize < room {
		return ""
	}
	return dir
}

// The names of folders end so, once they are locked and before.
const (
	lockedSuffix = ".perpetua-locked"
	newSuffix    = ".perpetua-new"
)

// holding are the folders that this process has locked: one that nobody refers to would be closed.
var holding struct {
	mu      sync.Mutex
	folders []*os.File
}

// lockedFolder makes a folder that is locked until the process ends, however it does. It has its name only once it is locked:
// under that name, whoever sweeps could lock it first, and would take it for one that nobody holds. Processes that this one
// starts do not hold it.
func lockedFolder(parent, pattern string) (string, error) {
	made, err := os.MkdirTemp(parent, strings.TrimSuffix(pattern, "*")+"*"+newSuffix)
	if err != nil {
		return "", err
	}
	folder, err := os.Open(made)
	if err != nil {
		return "", err
	}
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "", err
	}
	holding.mu.Lock()
	holding.folders = append(holding.folders, folder)
	holding.mu.Unlock()
	if err := os.Chmod(made, 0o755); err != nil {
		return "", err
	}
	dir := strings.TrimSuffix(made, newSuffix) + lockedSuffix
	return dir, os.Rename(made, dir)
}

// sweep removes the folders that nobody holds any more.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, "*"+lockedSuffix)) // the pattern is a good one
	for _, dir := range found {
		folder, err := os.Open(dir)
		if err != nil {
			continue // another has swept it
		}
		if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // what stays for now, because it is another user's perhaps, is tried again the next time
		}
		_ = folder.Close()
	}
}
