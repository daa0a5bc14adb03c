package blob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gocloud.dev/blob"
)

// Write writes a blob, which is there whole or not at all, also after a power cut: where the bucket is a folder, the
// file is synced before it gets its name, and then the folders that lead to it.
func Write(ctx context.Context, b *blob.Bucket, key string, content []byte) error {
	return write(ctx, b, key, content, (*os.File).Sync)
}

func write(ctx context.Context, b *blob.Bucket, key string, content []byte, sync func(*os.File) error) error {
	options := &blob.WriterOptions{ContentType: "application/octet-stream"}
	var root os.FileInfo
	if !b.As(&root) { // no folder: the store answers when it has it
		return b.WriteAll(ctx, key, content, options)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var file *os.File
	options.BeforeWrite = func(as func(any) bool) error { as(&file); return nil }
	w, err := b.NewWriter(ctx, key, options)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	if err == nil {
		err = sync(file)
	}
	if err != nil {
		cancel() // so that closing it removes it
		_ = w.Close()
		return fmt.Errorf("blob store: writing %s: %w", key, err)
	}
	if err := w.Close(); err != nil {
		return err
	}
	return syncUpTo(root, filepath.Dir(file.Name()), sync)
}

// syncUpTo syncs a folder and those above it, up to the bucket's root.
func syncUpTo(root os.FileInfo, path string, sync func(*os.File) error) error {
	for {
		at, err := syncFolder(path, sync)
		if err != nil {
			return fmt.Errorf("blob store: %w", err)
		}
		above := filepath.Dir(path)
		if os.SameFile(at, root) || above == path {
			return nil
		}
		path = above
	}
}

func syncFolder(path string, sync func(*os.File) error) (os.FileInfo, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	// Some file systems sync no folders, and need it not or can't.
	if err := sync(folder); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	return folder.Stat()
}

// Spoilt reports whether an error of reading a blob comes from a file of attributes beside it. In a folder such a file is read
// first, and none is ever written, so that somebody has planted it: the store is there, and answers so for ever.
func Spoilt(err error) bool {
	var form *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &form) || errors.As(err, &kind) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EISDIR)
}

// Temporary reports whether a key is of a file that somebody writes at this time, or wrote when he was killed: in a
// folder, a blob is listed under such a key until it has its own.
func Temporary(key string) bool {
	rest, ok := strings.CutSuffix(key, ".tmp")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 || len(rest)-dot != len(".0123456789abcdef") {
		return false
	}
	_, err := strconv.ParseUint(rest[dot+1:], 16, 64)
	return err == nil
}
