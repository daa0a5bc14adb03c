package projectiontest

import "golang.org/x/sys/unix"

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
