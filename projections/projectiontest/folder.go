package projectiontest

import "os"

// Folder creates a folder for the data of a test's venue or database. Other users may enter it, because Postgres may
// run as another user. Unless TMPDIR is set, the folder is in memory if the system has enough: files that are created,
// synced and removed within seconds would keep the disk busier than the tests keep the processors. A test that was
// killed leaves its folder in memory. The next test removes it if it can lock it. So a folder that is removed and
// created again under the same name, which loses the lock, may be removed.
func Folder(pattern string) (string, error) {
	parent := ""
	if os.Getenv("TMPDIR") == "" {
		parent = inMemory()
	}
	if parent != "" {
		sweep(parent)
		return lockedFolder(parent, pattern)
	}
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
