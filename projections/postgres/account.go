package postgres

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system's user that runs the server.
type account struct {
	name     string
	uid, gid int
	other    bool // it is not this process's user
}

// chooseAccount returns this process's user. For root it returns the owner of an existing data directory, or else the
// first of postgres and nobody that exists.
func chooseAccount(data string) (account, error) {
	if uid := os.Getuid(); uid != 0 {
		return account{name: strconv.Itoa(uid), uid: uid, gid: os.Getgid()}, nil
	}
	if info, err := os.Stat(data); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			return account{name: strconv.Itoa(int(stat.Uid)), uid: int(stat.Uid), gid: int(stat.Gid), other: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(found.Uid)
		gid, err2 := strconv.Atoi(found.Gid)
		if err := errors.Join(err1, err2); err != nil || uid == 0 {
			continue
		}
		return account{name: name, uid: uid, gid: gid, other: true}, nil
	}
	return account{}, errors.New("neither a user postgres nor nobody exists, and as root Postgres does not run: run as an ordinary user, or give --database-url")
}

// attributes makes a command run as the account. The command gets a separate process group, so that Ctrl-C in a
// terminal reaches this process only.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}

// reaches reports whether the mode bits allow the account to traverse all folders down to path.
func (a account) reaches(path string) bool {
	if !a.other {
		return true
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		bit := fs.FileMode(0o001)
		switch {
		case int(stat.Uid) == a.uid:
			bit = 0o100
		case int(stat.Gid) == a.gid:
			bit = 0o010
		}
		if info.Mode()&bit == 0 {
			return false
		}
		if path == filepath.Dir(path) {
			return true
		}
	}
}

// dataFolder returns the folder for the data directory, owned by the account: below dir if the account can reach dir, else
// in a folder for variable data.
func (a account) dataFolder(dir string, logger *slog.Logger) (string, error) {
	if !a.reaches(dir) {
		return a.elsewhere(dir, logger)
	}
	base := filepath.Join(dir, "cluster")
	return base, a.makeFolder(base)
}

func (a account) makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return a.chown(path)
}

// writeFile writes a file that only the account and root can read. It replaces an existing file atomically: a full disk or a crash
// leaves the old file. The account owns the folder, so another process may have put a link there: the link must not make root write to
// another file or change its owner.
func (a account) writeFile(path, text string) error {
	unfinished := path + ".new"
	if err := removeFile(unfinished); err != nil {
		return err
	}
	file, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if a.other {
		err = errors.Join(err, file.Chown(a.uid, a.gid))
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(err, removeFile(unfinished))
	}
	return nil
}

func (a account) chown(path string) error {
	if !a.other {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}
