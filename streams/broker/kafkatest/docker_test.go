package kafkatest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fakeDocker is a docker whose containers are processes that sleep. It writes its arguments to a file. A command about a
// container waits until the container runs, and only then writes its line: docker run is in the background.
const fakeDocker = `#!/bin/sh
folder=$(dirname "$0")
log() { echo "$*" >> "$folder/log"; }
of() { while ! [ -s "$folder/$1" ]; do sleep 0.02; done; cat "$folder/$1"; }
case $1 in
run) log "$@"; echo $$ > "$folder/$4"; exec sleep 600 ;;
kill) pid=$(of "$2"); log "$@"; kill -KILL "$pid" ;;
pause) pid=$(of "$2"); log "$@"; kill -STOP "$pid" ;;
unpause) pid=$(of "$2"); log "$@"; kill -CONT "$pid" ;;
*) log "$@" ;;
esac
`

// TestNodesInContainers starts, pauses, resumes and kills a node of a Cluster whose nodes are containers.
func TestNodesInContainers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("containers of a Cluster take Linux")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	d, err := findDocker(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{dir: dir, libs: imageLibraries, docker: d, wrap: func(_ int, command []string) []string { return command }}
	n := &clusterNode{id: 1, configuration: filepath.Join(dir, "server.properties"), output: filepath.Join(dir, "output")}
	c.nodes[0] = n
	defer func() {
		if err := c.Kill(1); err != nil {
			t.Error(err)
		}
	}()
	for range 2 { // the second time after a kill
		for _, step := range []func(int) error{c.Start, c.Pause, c.Resume, c.Pause, c.Kill, c.Kill} {
			if err := step(1); err != nil {
				t.Fatal(err)
			}
		}
		if c.Running(1) {
			t.Fatal("a node that was killed runs")
		}
	}
	if err := c.Pause(1); err == nil {
		t.Error("a node that does not run is paused")
	}
	content, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	names := make(map[string]bool)
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		words := strings.Fields(line)
		commands = append(commands, words[0])
		if words[0] != "run" {
			continue
		}
		names[words[3]] = true
		for _, want := range []string{"--rm", "--network host", "--volume " + dir + ":" + dir, "--entrypoint java " + image(),
			"-cp " + imageLibraries + "/*", n.configuration} {
			if !strings.Contains(line, want) {
				t.Errorf("docker %s has no %q", line, want)
			}
		}
	}
	if got, want := strings.Join(commands, " "), "version run pause unpause pause kill run pause unpause pause kill"; got != want {
		t.Errorf("the commands are %s, want %s", got, want)
	}
	if len(names) != 2 {
		t.Errorf("two containers have the names %v", names)
	}
}
