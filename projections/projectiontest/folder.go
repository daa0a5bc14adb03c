package projectiontest

import "os"

// Folder makes a folder for the data of a test's venue or database, which other users may enter: Postgres may run as one.
// Where the system has room for it in memory it is there, unless TMPDIR says otherwise: what is created, synced and removed
// within seconds would otherwise keep the disk busier than the tests keep the processors. Nobody clears memory up after a
// test that was killed, so the next test does: by the lock on the folder, so a folder that is removed and made again under the
// same name is lost.
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
