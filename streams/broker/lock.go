package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// InUseError reports that another process has locked a folder.
type InUseError struct {
	Dir string
	PID int // 0 if the holder has not written it yet
}

// Error implements error.
func (e *InUseError) Error() string {
	if e.PID == 0 {
		return "the folder " + e.Dir + " is in use by another process"
	}
	return fmt.Sprintf("the folder %s is in use by process %d", e.Dir, e.PID)
}

// Lock is an exclusive lock of this process on a folder. The kernel releases it when the process ends in any manner.
type Lock struct{ file *os.File }

// LockFolder locks an existing folder for this process, or fails with *InUseError. The lock is on the file "lock"
// inside the folder, which holds the process id of the last holder. The file is never removed: otherwise two processes
// could lock two different files of that name.
func LockFolder(dir string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		return nil, &InUseError{Dir: dir, PID: holder(file.Name())}
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// FolderHolder returns the id of the process that has locked the folder, or 0 if none has or the holder has not written it yet. A
// LockFolder at the same time may fail if none has.
func FolderHolder(dir string) (pid int, err error) {
	file, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return holder(file.Name()), nil
	}
	if err != nil {
		return 0, fmt.Errorf("lock %s: %w", dir, err)
	}
	return 0, nil
}

// holder returns the process id in the file of a lock, or 0.
func holder(path string) int {
	text, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// Unlock releases the folder.
func (l *Lock) Unlock() error { return l.file.Close() }

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// lockPatience bounds the time that LockFolderSoon waits. A process that was killed holds its locks until the kernel has
// released its memory and closed its files.
const lockPatience = 5 * time.Second

// LockFolderSoon locks a folder like LockFolder. If another process has locked it, it logs that and waits for up to five
// seconds, or until ctx ends, for that process to end.
func LockFolderSoon(ctx context.Context, dir string, log *slog.Logger) (*Lock, error) {
	lock, err := LockFolder(dir)
	inUse := (*InUseError)(nil)
	if !errors.As(err, &inUse) {
		return lock, err
	}
	log.Info("waiting for the process that has locked the folder", "dir", dir, "process", inUse.PID, "patience", lockPatience)
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if lock, err = WaitFolder(ctx, dir); errors.As(err, &inUse) {
		return nil, inUse
	}
	return lock, err
}

// WaitFolder locks a folder like LockFolder, but waits while another process has locked it.
func WaitFolder(ctx context.Context, dir string) (*Lock, error) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		lock, err := LockFolder(dir)
		if inUse := (*InUseError)(nil); !errors.As(err, &inUse) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-pause.C:
		}
	}
}
