package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"
)

// child is a process of this binary with one function in the bench. It reads requests in JSON from its standard input
// and answers each on its standard output. It ends with its input.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	enc  *json.Encoder
	dec  *json.Decoder
	log  *os.File
}

// childFunc serves until its input ends.
type childFunc func(context.Context, *json.Decoder, *json.Encoder) error

// children returns the functions of `bench child NAME`.
func children() map[string]childFunc {
	return map[string]childFunc{
		"load":          configured(loadChild),
		"noop":          configured(noopChild),
		"postgres":      configured(postgresChild),
		"responses":     configured(responsesChild),
		"produce":       configured(produceChild),
		"broker":        configured(brokerChild),
		"journal":       configured(journalChild),
		"memory":        configured(memoryChild),
		"hub":           configured(hubChild),
		"melody":        configured(melodyChild),
		"socket-reader": configured(socketReaderChild),
		"uploader":      configured(uploaderChild),
		"plain-files":   configured(plainFilesChild),
		"receivers":     configured(receiversChild),
		"poster":        configured(posterChild),
	}
}

// configured returns a child that first reads its configuration.
func configured[C any](run func(context.Context, C, *json.Decoder, *json.Encoder) error) childFunc {
	return func(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
		var config C
		if err := in.Decode(&config); err != nil {
			return err
		}
		return run(ctx, config, in, out)
	}
}

// answerAll writes a child's first answer, and then answers each request until the input ends.
func answerAll[Request, Reply any](in *json.Decoder, out *json.Encoder, ready any, do func(Request) (Reply, error)) error {
	err := out.Encode(ready)
	for err == nil {
		var request Request
		if err = in.Decode(&request); err != nil {
			return err
		}
		var reply Reply
		if reply, err = do(request); err == nil {
			err = out.Encode(reply)
		}
	}
	return err
}

// awaitEnd writes a child's only answer, and waits for the end of the input.
func awaitEnd(in *json.Decoder, out *json.Encoder, ready any) error {
	err := out.Encode(ready)
	if err == nil {
		err = in.Decode(new(struct{}))
	}
	return err
}

func runChild(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	run, ok := children()[name]
	if !ok {
		return &usageError{fmt.Sprintf("there is no child %q", name)}
	}
	// A node makes its collector wait until the heap has grown considerably. Children do the same, for a fair
	// comparison.
	debug.SetGCPercent(800)
	err := run(ctx, json.NewDecoder(in), json.NewEncoder(out))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// child starts a child, sends its configuration, and waits for its first answer.
func (b *bench) child(ctx context.Context, name string, config, ready any) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd, log, err := b.command(ctx, name, self, "child", name)
	if err != nil {
		return nil, err
	}
	c := &child{name: name, cmd: cmd, log: log}
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.enc, c.dec = json.NewEncoder(c.in), json.NewDecoder(out)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := c.call(config, ready); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// command returns a process of a binary, not started. Its standard error goes to a file of the bench's folder, which the
// caller must close.
func (b *bench) command(ctx context.Context, name, binary string, args ...string) (*exec.Cmd, *os.File, error) {
	log, err := os.CreateTemp(b.dir, name+"-*.log")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Stderr = log
	cmd.SysProcAttr = endWithParent()
	return cmd, log, nil
}

// call sends a request and waits for the reply.
func (c *child) call(request, reply any) error {
	err := c.enc.Encode(request)
	if err == nil {
		err = c.dec.Decode(reply)
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", c.name, err, tail(c.log.Name()))
	}
	return nil
}

// stop ends the child by ending its input.
func (c *child) stop() {
	c.in.Close()
	_ = c.cmd.Wait() // its results have already been read
	c.log.Close()
}

// tail returns the end of a log for an error message.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s: %s", filepath.Base(path), content[max(0, len(content)-2000):])
}
