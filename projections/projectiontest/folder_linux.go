package projectiontest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// room is the free memory that inMemory requires: many times more than the tests of a package use. A container's usual
// 64 MiB are not enough.
const room = 4 << 30

// inMemory returns a folder in memory, or "" if none has enough room.
func inMemory() string {
	const dir = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Bavail)*fs.Bsize < room {
		return ""
	}
	return dir
}

// The suffixes of folders after and before they are locked.
const (
	lockedSuffix = ".perpetua-locked"
	newSuffix    = ".perpetua-new"
)

// holding contains the folders that this process has locked. Without a reference the garbage collector would close
// them.
var holding struct {
	mu      sync.Mutex
	folders []*os.File
}

// lockedFolder creates a folder that is locked until the process ends, even by a crash. The folder gets its final name
// after it is locked: otherwise another process's sweep could lock it first and take it for an abandoned one. Child
// processes do not inherit the lock.
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

// sweep removes the folders that no process has locked.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, "*"+lockedSuffix)) // the pattern is valid
	for _, dir := range found {
		folder, err := os.Open(dir)
		if err != nil {
			continue // another process has removed it
		}
		if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // on failure, perhaps because another user owns it, the next sweep tries again
		}
		_ = folder.Close()
	}
}
