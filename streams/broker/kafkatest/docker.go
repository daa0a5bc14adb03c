package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// docker runs the nodes of a Cluster in containers on the host network, so that their addresses and configuration equal
// those of nodes that are processes. Signals to the docker command do not reach a container, so kill, pause and resume
// are docker commands. If this process is killed, the containers keep running: docker rm -f removes them.
type docker struct {
	image  string
	folder string // the cluster's folder, at the same path in the containers
	names  [clusterNodes]string
	starts int
}

// findDocker returns a docker for a cluster in a folder. It fails if containers cannot use the host network.
func findDocker(ctx context.Context, folder string) (*docker, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("no Docker on this machine's own network: that takes Linux")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := runDocker(ctx, "version"); err != nil {
		return nil, fmt.Errorf("no Docker: %w", err)
	}
	return &docker{image: image(), folder: folder}, nil
}

// java returns the beginning of a command line that runs Java in a new container. Docker removes the container when
// Java ends.
func (d *docker) java(name string) []string {
	user := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) // owner of the folder
	return []string{"docker", "run", "--rm", "--name", name, "--label", "perpetua-kafkatest", "--network", "host",
		"--user", user, "--volume", d.folder + ":" + d.folder, "--entrypoint", "java", d.image}
}

// name returns a new name for the container of a node. Names are not reused: Docker may not have removed the previous
// container yet.
func (d *docker) name(node int) string {
	d.starts++
	d.names[node-1] = fmt.Sprintf("perpetua-kafkatest-%d-%d-%d", os.Getpid(), node, d.starts)
	return d.names[node-1]
}

// do runs the docker command kill, pause or unpause on the container of a node.
func (d *docker) do(command string, node int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return runDocker(ctx, command, d.names[node-1])
}

func runDocker(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "docker", args...)
	command.WaitDelay = time.Second // a child of docker may hold its output open
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker %s: %w %s", strings.Join(args, " "), err, lastLines(string(output), 1))
	}
	return nil
}
